// How settings become marks: shape, size and color, the same in every view and in the legend.

// Okabe and Ito's colors, which the color-blind can distinguish; yellow last, because it disappears on white.
const CATEGORIES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#f0e442"];
const SYMBOL_OF = { "np.array": 0, "scipy.csr": 1, csr: 2, native: 2 };

// The same shapes as in the pictures: corners around the center, with the area of a circle of radius 1.
const SYMBOLS = report.shapes.map((corners) => ({
  draw(context, size) {
    if (!corners.length) return d3.symbolCircle.draw(context, size);
    const radius = Math.sqrt(size / Math.PI);
    corners.forEach(([x, y], idx) => context[idx ? "lineTo" : "moveTo"](x * radius, y * radius));
    context.closePath();
  },
}));
const DASHES = ["none", "7 4", "2 4", "10 4 2 4", "4 2"];
const STAGE_COLORS = {
  read: "#0072b2",
  decode: "#56b4e9",
  shuffle: "#f0e442",
  densify: "#009e73",
  wait: "#d55e00",
  consume: "#999999",
};
const LARGEST_RADIUS = 14;
const SMALLEST_RADIUS = 4;

// A numeric setting is colored by its logarithm along viridis, without the yellow end; others by category.
function colorOf(key, value) {
  const values = valuesOf(key);
  const numbers = values.filter((one) => typeof one === "number");
  if (numbers.length && numbers.length === values.length) {
    const log = (one) => Math.log2(Math.max(1, one));
    const [least, most] = [log(numbers[0]), log(numbers.at(-1))];
    return d3.interpolateViridis(least === most ? 0.45 : 0.92 * ((log(value) - least) / (most - least)));
  }
  return CATEGORIES[values.indexOf(value) % CATEGORIES.length];
}

// Lines are colored by the setting that the shape encodes, in category colors.
const lineColorOf = (key, value) => CATEGORIES[Math.max(0, valuesOf(key).indexOf(value)) % CATEGORIES.length];

function symbolOf(key, value) {
  const known = Object.keys(SYMBOL_OF).length;
  if (key === "chunk_method") {
    const others = valuesOf(key).filter((method) => !(method in SYMBOL_OF));
    return SYMBOLS[SYMBOL_OF[value] ?? known + (others.indexOf(value) % (SYMBOLS.length - known))];
  }
  return SYMBOLS[Math.max(0, valuesOf(key).indexOf(value)) % SYMBOLS.length];
}

// The area of a mark is proportional to the rows of a block.
function radiusOf(rows) {
  const most = Math.max(1, ...valuesOf("block_size").filter((value) => typeof value === "number"));
  // Smaller if there are many points, or little room.
  const many = points.length > 300 || document.documentElement.clientWidth < 500 ? 0.6 : 1;
  return Math.max(SMALLEST_RADIUS * many, LARGEST_RADIUS * many * Math.sqrt(Math.min(1, rows / most)));
}

const symbolPath = (symbol, radius) => d3.symbol(symbol, Math.PI * radius * radius)();

// Past the last color they repeat, with thicker lines and other shapes.
const isColoredAgain = (key, value) => Math.floor(Math.max(0, valuesOf(key).indexOf(value)) / CATEGORIES.length);

// Cached, because it is used for every point.
function memoized(of) {
  const known = new Map();
  return (key, value) => {
    const name = `${key}\n${value}`;
    if (!known.has(name)) known.set(name, of(key, value));
    return known.get(name);
  };
}
const fillOf = memoized(colorOf);
const markOf = memoized(symbolOf);
