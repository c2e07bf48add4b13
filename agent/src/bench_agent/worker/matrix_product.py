"""The matrix product that a process times: what its framework can reach on the device.

The server bounds training by it, so it must not be slow by accident. On a busy machine a thread of
a product waits for a core for 20 to 40 ms now and then. Products below 1,024 rows are done long
before, and such a wait would be all that is timed. The fastest of several tries counts, of the size
with the highest rate.
"""

from collections.abc import Callable

from bench_protocol.catalogue.matrix import PRODUCTS, Precision
from bench_protocol.payload.result import Gemm

from ..engines.seam import Engine, Products

SIZES = (1024, 2048, 4096, 8192)
# Larger products are tried until one takes as long.
LONG_ENOUGH_NS = 20_000_000
TRIES = 4
# Slow processors have no time for all tries: where the time is up, one is enough.
MOST_NS = 1_000_000_000


def fastest(
    engine: Engine, precision: Precision, timed: Callable[[Callable[[], object]], int]
) -> Gemm:
    """The square product with the highest rate, by an engine that is loaded for the precision;
    ``timed``: runs a function and returns its nanoseconds."""
    tried = []
    for size in SIZES:
        products = engine.products(size)

        def product(products: Products = products) -> None:
            products.request(1)
            products.sync()

        product()
        best_ns = spent_ns = timed(product)
        for _ in range(TRIES - 1):
            if spent_ns >= MOST_NS:
                break
            again_ns = timed(product)
            best_ns, spent_ns = min(best_ns, again_ns), spent_ns + again_ns
        tried.append(Gemm(size=size, precision=PRODUCTS[precision], duration_ns=max(1, best_ns)))
        if best_ns >= LONG_ENOUGH_NS:
            break
    return max(tried, key=lambda product: product.size**3 / product.duration_ns)
