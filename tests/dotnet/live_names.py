# SPDX-License-Identifier: MIT
"""Names as in C#: of assemblies of the framework, and in what a process shows."""
import os

import csharp_names
from harness import expect
from live_frameworks import sdk_root


def framework(*names):
    shared = os.path.join(sdk_root(), "shared", "Microsoft.NETCore.App")
    version = sorted(os.listdir(shared))[-1]
    return [os.path.join(shared, version, name + ".dll") for name in names]


def test_names_as_in_csharp_agree_with_metadata(context):
    context.sdk()
    # SZArrayHelper has four methods that are named as accessors.
    made, understood = csharp_names.check(context, framework("System.Private.CoreLib", "System.Net.Http", "System.Linq"), 4)
    expect(made > 1000 and understood / made >= csharp_names.UNDERSTOOD_SHARE, f"{understood} of {made} understood")
