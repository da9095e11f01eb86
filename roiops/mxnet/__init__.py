"""What is here for old scripts' sake: MXNet's own names of things, and scripts that import mxnet."""
