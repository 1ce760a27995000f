# SPDX-License-Identifier: MIT
"""The quick part of the matrix: single-file applications, whose images lie inside the executable or are unpacked."""
import matrix
import shapes


def _run(context, title):
    shape = next(shape for shape in shapes.SHAPES if shape.title == title)
    matrix.run_shape(context, shape)


def test_single_file_frames_have_method_names(context):
    _run(context, "10.0 single-file")


def test_compressed_single_file_frames_have_method_names(context):
    _run(context, "10.0 single-file compressed")


def test_self_contained_8_0_frames_and_methods_are_named_by_rundown(context):
    _run(context, "8.0 self-contained")


def test_self_contained_9_0_frames_and_methods_are_named_by_rundown(context):
    _run(context, "9.0 self-contained")


def test_core_3_1_frames_and_methods_are_named_by_rundown(context):
    _run(context, "3.1 framework-dependent")
