"""Numbers by which pooling kernels are told what to do. No kernel is here, so importing this is quick."""

#: What a window becomes.
MAXIMUM, MEAN, SUM, NORM = 0, 1, 2, 3
#: What a mean divides by: the pixels of the image, those and the padding, or the whole kernel.
INSIDE, PADDED, KERNEL = 0, 1, 2
