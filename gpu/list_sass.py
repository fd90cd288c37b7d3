#!/usr/bin/env python3
"""Reads `cuobjdump -sass BINARY` on standard input and prints, per wrapper, the arithmetic mnemonics and their counts."""
import re
import sys

ARITHMETIC = re.compile(r"^(\w*MMA(\.|$)|FADD|FMUL|FFMA|DADD|DFMA|HADD2|HMUL2|HFMA2|F2FP|F2F|SHFL|PLOP3|POPC)")
wrapper, table = None, {}
for line in sys.stdin:
    if found := re.search(r"Function : \S*?\d((?:Mma|Wmma|Wgmma|Tcgen05)[A-Za-z]*\d+)E", line):
        wrapper = found[1]
        table[wrapper] = {}
    elif wrapper and (found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?([A-Z0-9_.a-z]+) ?(.*?);", line)):
        name, operands = found[1], found[2]
        constant = "RZ, RZ" in operands and name.startswith(("HFMA2", "IMAD"))  # a register set to a constant
        predicate_logic = name.startswith("PLOP3") and ".SIGN" not in operands
        if ARITHMETIC.match(name) and not constant and not predicate_logic:
            table[wrapper][name] = table[wrapper].get(name, 0) + 1
for wrapper, counts in table.items():
    print(wrapper, ", ".join(name if count == 1 else f"{name} x{count}" for name, count in counts.items()), sep="\t")
