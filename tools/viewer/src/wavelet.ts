// Order statistics of any stretch of a sequence, without looking at its values: a wavelet matrix (Claude, Navarro
// and Ordóñez, "The wavelet matrix", Information Systems 47, 2015). Values are numbered by size first; each level
// holds one bit of these numbers, in the order in which the bits above have sorted them. The k-th smallest of m
// stretches together costs about 2·m·log₂(different values) lookups, however long they are; a value costs about
// log₂(different values) bits.

/** Bits between two counts; a count is looked up, the rest is counted in words. */
const STRIDE = 256;
const WORDS = STRIDE / 32;

/** What a matrix is made of, as it crosses from one thread to another. */
export interface Levels {
  /** The different values, ascending. */
  values: Float64Array;
  /** Highest bit first: the bits themselves, and how many zeros are before each stride. */
  levels: { bits: Uint32Array; zerosBefore: Uint32Array; zeros: number }[];
}

/** Stretches of a sequence, `from` included, `to` excluded. */
export interface Stretches {
  from: number[];
  to: number[];
}

/** The levels of a sequence: `placeOf[i]` is where in it `values[i]` stands. Values are whole and not negative. */
export function levelsOf(values: Float64Array, placeOf: Uint32Array): Levels {
  const { length } = values;
  const known = new Known();
  let sequence = new Uint32Array(length);
  for (let at = 0; at < length; at++) sequence[placeOf[at]] = known.numberOf(values[at]);
  const sorted = known.values.sort();
  const bySize = new Uint32Array(sorted.length);
  sorted.forEach((value, number) => (bySize[known.numberOf(value)] = number));
  for (let at = 0; at < length; at++) sequence[at] = bySize[sequence[at]];
  let next = new Uint32Array(length);
  const levels = [];
  for (let bit = 31 - Math.clz32(Math.max(sorted.length - 1, 0)); bit >= 0; bit--) {
    levels.push(levelOf(sequence, next, bit));
    [sequence, next] = [next, sequence];
  }
  return { values: sorted, levels };
}

/** Numbers for values, in order of appearance: a table with open addresses, at most half full. */
class Known {
  #keys = new Float64Array(1 << 10).fill(-1);
  #numbers = new Uint32Array(1 << 10);
  #values = new Float64Array(1 << 9);
  #count = 0;

  numberOf(value: number): number {
    const place = this.#placeOf(value);
    if (this.#keys[place] === value) return this.#numbers[place];
    if (this.#count === this.#values.length) {
      this.#grow();
      return this.numberOf(value);
    }
    this.#keys[place] = value;
    this.#values[this.#count] = value;
    this.#numbers[place] = this.#count;
    return this.#count++;
  }

  #placeOf(value: number): number {
    const keys = this.#keys;
    const hash = Math.imul(value | 0, 0x9e3779b1);
    let place = (hash ^ (hash >>> 15)) & (keys.length - 1);
    while (keys[place] !== value && keys[place] >= 0) place = (place + 1) & (keys.length - 1);
    return place;
  }

  #grow(): void {
    const values = this.values;
    this.#keys = new Float64Array(this.#keys.length * 2).fill(-1);
    this.#numbers = new Uint32Array(this.#keys.length);
    this.#values = new Float64Array(this.#keys.length / 2);
    this.#values.set(values);
    values.forEach((value, number) => {
      const place = this.#placeOf(value);
      this.#keys[place] = value;
      this.#numbers[place] = number;
    });
  }

  /** The different values, in order of appearance. */
  get values(): Float64Array {
    return this.#values.slice(0, this.#count);
  }
}

/** One level: notes the bit of each number, and writes the numbers into `sorted`, those with a zero first. */
function levelOf(sequence: Uint32Array, sorted: Uint32Array, bit: number): Levels["levels"][number] {
  const { length } = sequence;
  const words = (Math.floor(length / STRIDE) + 1) * WORDS;
  const bits = new Uint32Array(words);
  const zerosBefore = new Uint32Array(words / WORDS + 1);
  let zeros = 0;
  for (let at = 0; at < length; at++) {
    if ((at & (STRIDE - 1)) === 0) zerosBefore[at / STRIDE] = zeros;
    const isOne = (sequence[at] >>> bit) & 1;
    bits[at >>> 5] |= isOne << (at & 31);
    zeros += 1 - isOne;
  }
  if (length % STRIDE === 0) zerosBefore[length / STRIDE] = zeros;
  let [zero, one] = [0, zeros];
  for (let at = 0; at < length; at++) {
    const number = sequence[at];
    if ((number >>> bit) & 1) sorted[one++] = number;
    else sorted[zero++] = number;
  }
  return { bits, zerosBefore, zeros };
}

export class WaveletMatrix {
  #of: Levels;

  constructor(levels: Levels) {
    this.#of = levels;
  }

  /** The value that `rank` others of the stretches together do not exceed (from 0); the stretches are used up. */
  smallest(stretches: Stretches, rank: number): number {
    const { from, to } = stretches;
    let number = 0;
    let left = rank;
    let count = from.length;
    const zerosFrom = new Uint32Array(count);
    const zerosTo = new Uint32Array(count);
    for (const level of this.#of.levels) {
      let zeros = 0;
      for (let at = 0; at < count; at++) {
        zerosFrom[at] = zerosTill(level, from[at]);
        zerosTo[at] = zerosTill(level, to[at]);
        zeros += zerosTo[at] - zerosFrom[at];
      }
      const isOne = left >= zeros;
      if (isOne) left -= zeros;
      number = number * 2 + (isOne ? 1 : 0);
      // Stretches that have nothing on this side are left out from here on.
      let kept = 0;
      for (let at = 0; at < count; at++) {
        const [first, last] = isOne ? [level.zeros + from[at] - zerosFrom[at], level.zeros + to[at] - zerosTo[at]] : [zerosFrom[at], zerosTo[at]];
        if (first >= last) continue;
        [from[kept], to[kept]] = [first, last];
        kept++;
      }
      count = kept;
    }
    return this.#of.values[number];
  }
}

/** How many zeros are before a place. */
function zerosTill({ bits, zerosBefore }: Levels["levels"][number], place: number): number {
  const stride = Math.floor(place / STRIDE);
  let ones = 0;
  let word = stride * WORDS;
  for (const last = place >>> 5; word < last; word++) ones += onesIn(bits[word]);
  if (place & 31) ones += onesIn(bits[word] & (2 ** (place & 31) - 1));
  return zerosBefore[stride] + (place - stride * STRIDE) - ones;
}

function onesIn(word: number): number {
  let pairs = word - ((word >>> 1) & 0x55555555);
  pairs = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((pairs + (pairs >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
