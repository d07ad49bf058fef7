"""How a method is run on a split: one module a protocol.

`published`: the rules of the paper's first public code. `described`: the paper's text. `honest`:
all that is chosen is chosen on the labelled rows. Beside them `corrected`: what each rule of
`published` is worth.
"""

from otprop.benchmark.protocols.base import Given, Outcome, Protocol
from otprop.benchmark.protocols.corrected import Corrected
from otprop.benchmark.protocols.described import Described
from otprop.benchmark.protocols.honest import Honest
from otprop.benchmark.protocols.published import Published

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol for protocol in (Published(), Corrected(), Described(), Honest())
}

__all__ = ["PROTOCOLS", "Given", "Outcome", "Protocol"]
