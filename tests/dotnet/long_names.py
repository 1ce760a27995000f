# SPDX-License-Identifier: MIT
"""Names as in C# of all that C# compilers made in the framework, ASP.NET and the SDK: `make check-long`."""
import glob
import os

import csharp_names
from harness import expect
from live_frameworks import sdk_root


def test_names_as_in_csharp_of_everything(context):
    context.sdk()
    files = [path for below in ("shared", "sdk") for path in glob.glob(os.path.join(sdk_root(), below, "**", "*.dll"), recursive=True)
             if not path.endswith(".resources.dll") and not os.path.basename(path).startswith("FSharp.") and ".VisualBasic" not in path]
    made, understood = csharp_names.check(context, sorted(files), 40)
    expect(made > 30000 and understood / made >= csharp_names.UNDERSTOOD_SHARE, f"{understood} of {made} understood")
