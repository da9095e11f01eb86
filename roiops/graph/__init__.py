"""Graphs of operators: nodes, shapes and types, the plan of a run, the executor, Symbol and its files."""
