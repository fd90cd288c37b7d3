"""The convolutions that small networks usually have, all of which are recorded one by one: filters by channels, sides and images."""
import numpy as np

# Images of a batch.
IMAGES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 24, 25, 28, 30, 32, 36, 40, 48, 50, 56, 60, 64, 72, 80, 96, 100, 120, 128, 150, 160, 192, 200,
          250, 256, 384, 500, 512, 1000]
# Rows and columns of pictures, and of what layers make of them.
PICTURES = [8, 12, 14, 16, 20, 24, 28, 32, 36, 40, 48, 50, 56, 60, 64, 72, 80, 96, 100, 112, 128, 150, 160, 192, 200, 224, 256]
SIDES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 25, 26, 28, 30, 31, 32, 40, 48, 50, 56, 64, 112]
# Filters of 1 x 1 are listed with more.
POINTWISE_SIDES = sorted({*SIDES, 36, 80, 96, 128})
PATCHES = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16]  # along a side of a picture
CHANNELS = [4, 6, 8, 10, 12, 16, 20, 24, 28, 30, 32, 36, 40, 48, 56, 60, 64, 72, 80, 96, 112, 120, 128, 144, 160, 192, 224, 256, 288, 320, 384, 448, 480, 512,
            640, 768, 1024]
OF_PATCHES = [16, 24, 32, 40, 48, 64, 80, 96, 100, 128, 160, 192, 256, 320, 384, 512, 768, 1024]
# Of MobileNets and their like: channels of a block, which is six times as wide inside.
OF_BLOCKS = [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 120, 160, 192, 240, 320]
FIRST = [(c, k) for c in (1, 2, 3, 4) for k in (4, 6, 8, 10, 12, 16, 20, 24, 30, 32, 40, 48, 64, 96, 128)]
FIRST_OF_PATCHES = [(c, k) for c in (1, 3) for k in OF_PATCHES]
# Layers whose channels grow or shrink by less than a factor of two.
STEPS = [4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]
# Channels of ResNet's kind.
POWERS = [8, 16, 32, 64, 128, 256, 512]
# Of filters of 1 x 1 of MobileNetV3, Inception, SqueezeNet and ShuffleNetV2.
OF_NETWORKS = {16: (16, 64, 72), 24: (58, 72, 88), 40: (96, 120, 240), 48: (144, 192, 288), 58: (58,), 64: (24, 256), 72: (24, 40), 80: (184, 200, 480), 88: (24,),
               96: (16, 40, 576), 112: (672,), 116: (116,), 120: (40, 48), 128: (16, 32), 144: (48,), 160: (960,), 184: (80,), 192: (16, 32, 96, 1024),
               200: (80,), 232: (232,), 240: (40, 80), 256: (32, 48, 64, 128), 288: (96,), 320: (1280,), 384: (48, 64), 464: (1024,),
               480: (16, 64, 96, 112, 192), 512: (24, 32, 64, 112, 128, 144, 160), 528: (32, 128, 160, 256), 576: (96, 1024), 672: (112, 160),
               832: (32, 48, 128, 160, 192, 256, 384), 960: (160, 1280)}
# Filter, stride, padding.
OF_PICTURES = [(3, 1, 1), (3, 1, 0), (3, 2, 1), (5, 1, 2), (5, 1, 0), (5, 2, 2), (7, 2, 3), (4, 2, 1), (1, 1, 0)]
INNER = [(3, 1, 1), (3, 2, 1), (1, 1, 0), (1, 2, 0), (3, 1, 0), (5, 1, 2), (5, 1, 0), (4, 2, 1), (2, 2, 0)]
SIDES_OF_PATCHES = [2, 4, 7, 8, 14, 16, 32]
# What is recorded: FP16, BF16, TF32 or FP32, and whether channels lie together; what programs have most first.
VARIANTS = [(2, 0), (0, 0), (1, 0), (1, 1), (0, 1), (2, 1), (3, 0)]
MOST_PRODUCTS, MOST_ELEMENTS = 2 ** 32, 2 ** 23


def inner_channels(filter):
    """Of a filter of stride 1, or (2) of another one."""
    pairs = {(c, k) for c in CHANNELS for k in (c, 2 * c, c // 2)}
    pairs |= {(3 * c, c) for c in CHANNELS if 3 * c <= 1024}
    pairs |= {(6, 16), (10, 20), (16, 120), (20, 50), (16, 36), (24, 64), (20, 64), (12, 32), (64, 192), (384, 256)}
    pairs |= {x for pair in zip(STEPS, STEPS[1:]) for x in (pair, pair[::-1])}
    if filter == 1:
        pairs |= {(c, k) for c in CHANNELS for k in (1, 2, 3, 10, c // 4, 4 * c)}
        pairs |= {(c, 6 * c) for c in OF_BLOCKS} | {(6 * c, k) for c in OF_BLOCKS for k in OF_BLOCKS if c <= k <= 2 * c}
    if filter == 3:
        pairs |= {(c, k) for c in CHANNELS for k in (1, 2, 3)}
    if filter == 2:
        pairs |= {(c, 4 * c) for c in CHANNELS}
    return sorted((c, k) for c, k in pairs if 0 < k <= 2048)


def pointwise_channels():
    """Of filters of 1 x 1: of blocks that widen and narrow again, bottlenecks, attention (queries, keys and values at once), U-Nets, dense blocks, classes of a
    pixel, and pyramids."""
    pairs = set(inner_channels(1))
    for c in OF_BLOCKS:
        for wide in (2 * c, 3 * c, 4 * c, 6 * c):
            pairs |= {(c, wide)} | {(wide, k) for k in OF_BLOCKS if c <= k <= 1.7 * c}
    pairs |= {x for c in POWERS for x in ((c, 4 * c), (4 * c, c), (4 * c, 2 * c))} | {(c, k) for c in POWERS for k in POWERS[2:6]}
    pairs |= {(c, 3 * c) for c in CHANNELS if c <= 512} | {(3 * c, 2 * c) for c in (16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320)}
    pairs |= {(c, k) for c in POWERS[1:6] for k in (4, 5, 6, 8, 12, 19, 20, 21, 100)}
    pairs |= {(c, 128) for c in range(64, 513, 32)} | {(c, 48) for c in range(24, 240, 12)}
    pairs |= {(c, k) for c, outputs in OF_NETWORKS.items() for k in outputs}
    return sorted((c, k) for c, k in pairs if max(c, k) <= 2048)


def squeezed_channels():
    """Of squeeze-and-excite, whose pictures have one pixel, there and back."""
    wide = {*CHANNELS, *OF_BLOCKS, *(n * c for c in OF_BLOCKS for n in (2, 3, 4, 6)), 88, 184, 200, 576, 672, 960, 1152, 1280, 2048}
    pairs = {(c, c // by) for c in wide for by in (2, 4, 8, 16)} | {(6 * c, c // 4) for c in OF_BLOCKS}
    # MobileNetV3 rounds a quarter to a multiple of 8.
    pairs |= {(c, max(8, (c // 4 + 4) // 8 * 8)) for c in wide}
    return sorted(x for c, k in pairs if c <= 2048 and k >= 2 for x in {(c, k), (k, c)})


# Filter, stride, padding; channels in and out; sides.
KINDS = [(*x, FIRST, PICTURES) for x in OF_PICTURES] + \
    [(p, p, 0, FIRST_OF_PATCHES, [p * x for x in PATCHES if p * x <= 256]) for p in SIDES_OF_PATCHES] + \
    [(11, 4, 2, [(c, k) for c in (1, 3) for k in (32, 48, 64, 96)], [32, 63, 64, 96, 112, 128, 224, 227]),
     (4, 1, 0, [(c, k) for c in CHANNELS for k in (1, 64, 100, 128)], [4, 8])] + \
    [(*x, *((pointwise_channels(), POINTWISE_SIDES) if x[0] == x[1] == 1 else (inner_channels(x[0] if x[1] == 1 else 2), SIDES))) for x in INNER] + \
    [(1, 1, 0, sorted({*squeezed_channels()} - {*pointwise_channels()}), [1])]


def extent_of(kind):
    return len(KINDS[kind][3]), len(KINDS[kind][4]), len(IMAGES)


def calls_of(kind):
    """Columns n, c, h, k, f, s, p of a kind's convolutions, the images running fastest, and which of them are recorded: those that have a result and are
    not too large."""
    f, s, p, pairs, sides = KINDS[kind]
    c, k = (np.repeat(np.array(pairs)[:, i], len(sides) * len(IMAGES)) for i in range(2))
    h = np.tile(np.repeat(sides, len(IMAGES)), len(pairs))
    n = np.tile(IMAGES, len(pairs) * len(sides))
    same = lambda x: np.full(len(n), x)
    q = (h + 2 * p - f) // s + 1
    recorded = (h + 2 * p >= f) & (n * c * k * f * f * q * q <= MOST_PRODUCTS) & (np.maximum(n * c * h * h, n * k * q * q) <= MOST_ELEMENTS)
    return np.stack([n, c, h, k, same(f), same(s), same(p)], 1), recorded


# Channels of DRAWN calls.
TYPICAL = {1, 2, 3, 4, 6, 8, 10, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512}


def drawn_of(kind, seed=77):
    """The same of 4,000 drawn convolutions of a kind's filter, of usual channels of its list, with any number of images and any side within the list: what the
    calls around them tell is judged by them. All are recorded that are not too large."""
    r = np.random.default_rng(seed * 100 + kind)
    f, s, p, pairs, sides = KINDS[kind]
    count, usual = 4000, [x for x in pairs if set(x) <= TYPICAL] or pairs
    c, k = np.array([usual[i] for i in r.integers(len(usual), size=count)]).T
    h = np.exp(r.uniform(np.log(max(min(sides), f)), np.log(max(sides)), count)).astype(int)
    if pairs == FIRST_OF_PATCHES:
        h = np.maximum(1, h // f) * f
    n = np.exp(r.uniform(0, np.log(300), count)).astype(int)
    q = (h + 2 * p - f) // s + 1
    is_wanted = (q > 0) & (n.astype(np.int64) * c * k * f * f * q * q <= 2 ** 31) & (np.maximum(n * c * h * h, n * k * q * q) <= MOST_ELEMENTS)
    calls = np.stack([n, c, h, k, *(np.full(count, x) for x in (f, s, p))], 1)[is_wanted]
    return calls, np.ones(len(calls), bool)
