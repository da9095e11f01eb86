"""Training: modules, optimizers, initializers, metrics, schedules, data iterators, callbacks."""
