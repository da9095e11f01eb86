"""Operators of detectors: proposals, suppression, box codes, SSD, deformable convolution."""

from . import box, deform_conv, mask_target, multibox, proposal
