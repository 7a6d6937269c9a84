/**
 * Joins the lines of a class with the usage report by their sum. A provider counts a call once: what the usage report counts
 * of a class is on the class's lines, whatever tier, length or place these name. Where the sums agree and the divisions do
 * not, the tokens keep the circumstances of the report, and the line shows how they were charged.
 */
import { type BilledClass, QUANTITY_ONE } from '../../billing/billedRow.js';
import type { TokenClass } from '../../events/event.js';
import { absPico, type Pico } from '../../money.js';
import { type Circumstances, isTokenClass } from '../audit/dayRates.js';
import type { UsageCell } from './cells.js';
import { CHARGE_DIVISOR } from './classLines.js';
import { isUsageOf } from './lineUse.js';
import type { Meter, MeterPart } from './meters.js';

/** Pico-dollars per million tokens of the model that is billed; undefined: no source lists a rate. */
export type RateOf = (tokenClass: TokenClass, circumstances: Circumstances) => Pico | undefined;

/** The circumstances that lines and reports name. */
const FIELDS = ['region', 'longContext', 'serviceTier', 'isBatch', 'tokenClass'] as const;
type Field = (typeof FIELDS)[number];

/** Classes of one kind of token that differ by their lifetime in the cache alone. */
const WRITES: ReadonlySet<BilledClass> = new Set(['cache_write_5m', 'cache_write_1h']);

/** Counts of one kind of use in the report; null: it does not name the field. */
interface Kind {
  tokenClass: TokenClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  quantity: bigint;
}

/** Lines and kinds of use that fit each other, and what the lines have more than the report counts of these kinds. */
interface Side {
  lines: Meter[];
  kinds: Kind[];
  more: bigint;
}

/** A line's own count, as billed or as its amount buys at the agreed rate. */
type Counts = ReadonlyMap<Meter, bigint>;

/** One part in so many: sums that differ by less are the same. */
const SAME_PARTS = 10_000n;
/** A move between lines is at least so many times the tolerance of counts. */
const SURE_TIMES = 20n;

/** Changes lines that hold other use than they name (`crossed`); lines that agree with the report stay. */
export function joinByTotals(meters: readonly Meter[], usage: readonly UsageCell[], rateOf: RateOf): void {
  const tellsPlace = namesPlaces(usage);
  const groupOf = (name: BilledClass) => (WRITES.has(name) ? 'writes' : name);
  const groups = new Set(
    meters
      .map((meter) => meter.tokenClass)
      .filter(isTokenClass)
      .map(groupOf),
  );
  for (const group of groups) {
    const lines = meters.filter((meter) => groupOf(meter.tokenClass) === group);
    const cells = usage.filter((cell) => groupOf(cell.tokenClass) === group);
    if (cells.length === 0 || joinClass(lines, cells, rateOf, tellsPlace) || group !== 'input') continue;
    // Cached tokens that are on these lines once more: then their kinds divide the lines as well.
    if (joinClass(lines, [...cells, ...cachedOf(usage)], rateOf, tellsPlace)) continue;
    for (const isBatch of [false, true]) divideWithSome(lines, cells, cachedOf(usage), isBatch, rateOf);
  }
}

/** The same where only some are: a mistake of one key, whose calls are all batch or all standard. */
function divideWithSome(
  lines: Meter[],
  cells: UsageCell[],
  cached: UsageCell[],
  isBatch: boolean,
  rateOf: RateOf,
): void {
  const counted = billedBy(lines);
  const of = cached.filter((cell) => cell.isBatch === isBatch);
  const [first] = of;
  if (!counted || !first) return;
  const count = (some: readonly UsageCell[]) => sumOf(some.map((cell) => cell.quantity));
  const quantity = sumOf([...counted.counts.values()]) - count(cells);
  if (quantity <= 0n || quantity > count(of)) return;
  const kinds = kindsOf([...cells, { ...first, quantity }]);
  const [only, ...others] = sidesOf(lines, kinds, counted.counts, false);
  if (only && others.length === 0) divide(only, new Map(), counted.slack, rateOf);
}

/** Tokens read from and written to the cache, as fresh input. */
const cachedOf = (usage: readonly UsageCell[]): UsageCell[] =>
  usage.flatMap((cell) =>
    cell.tokenClass === 'cache_read' || WRITES.has(cell.tokenClass) ? [{ ...cell, tokenClass: 'input' }] : [],
  );

/**
 * A report that is divided by length is divided by place (`context_window` and `inference_geo` are asked for together).
 */
function namesPlaces(usage: readonly UsageCell[]): boolean {
  const counted = usage.filter((cell) => isTokenClass(cell.tokenClass));
  return counted.some((cell) => cell.region !== null) || counted.every((cell) => cell.longContext !== null);
}

/** False: the sums differ. */
function joinClass(lines: Meter[], cells: UsageCell[], rateOf: RateOf, tellsPlace: boolean): boolean {
  const isCharged = lines.every((line) => line.quantitySource !== 'cost');
  if (isCharged && lines.every((line) => isAtAgreedRates(line, rateOf))) return true;
  const counted = isCharged ? boughtBy(lines, rateOf) : billedBy(lines);
  if (!counted) return true;
  const kinds = kindsOf(cells);
  const apart = sumOf([...counted.counts.values()]) - sumOf(kinds.map((kind) => kind.quantity));
  if (absPico(apart) > counted.slack) return false;
  const sides = sidesOf(lines, kinds, counted.counts, tellsPlace);
  const isOff = ({ more }: Side) => absPico(more) > counted.slack * SURE_TIMES;
  const moves: Moves | undefined = sides.some(isOff)
    ? movesOf(sides.filter(isOff), counted.slack, rateOf)
    : new Map();
  if (!moves) return true;
  for (const side of sides) {
    const arrived = moves.get(side);
    if (isCharged) for (const line of side.lines) countAs(line, counted.counts.get(line) ?? 0n);
    if (arrived) cross(side, arrived);
  }
  if (!isCharged) for (const side of sides) divide(side, moves, counted.slack, rateOf);
  return true;
}

const sumOf = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);

function isAtAgreedRates(line: Meter, rateOf: RateOf): boolean {
  if (line.quantity === null || !isTokenClass(line.tokenClass)) return false;
  const right = rightProduct(line, rateOf) / CHARGE_DIVISOR;
  return absPico(line.amountPico - right) <= line.roundingPico + 1n;
}

/** The line's quantities times the agreed rates; zero where a rate is unknown. */
function rightProduct({ tokenClass, parts }: Meter, rateOf: RateOf): bigint {
  if (!isTokenClass(tokenClass)) return 0n;
  return sumOf(parts.map((part) => part.quantity * (rateOf(tokenClass, part.circumstances) ?? 0n)));
}

interface Counted {
  counts: Counts;
  /** The tolerance of their sum. */
  slack: bigint;
}

function billedBy(lines: readonly Meter[]): Counted | undefined {
  const counts = new Map<Meter, bigint>();
  for (const line of lines) {
    if (line.quantity === null || line.quantitySource !== 'cost') return undefined;
    counts.set(line, line.quantity);
  }
  return { counts, slack: sumOf([...counts.values()]) / SAME_PARTS };
}

/** The whole tokens that the amounts buy at the agreed rates. */
function boughtBy(lines: readonly Meter[], rateOf: RateOf): Counted | undefined {
  const counts = new Map<Meter, bigint>();
  let slack = QUANTITY_ONE;
  for (const line of lines) {
    const { tokenClass, isBatch } = line;
    if (isBatch === null || !isTokenClass(tokenClass) || line.amountPico < 0n) return undefined;
    const rate = rateOf(tokenClass, namedBy(line));
    if (!rate) return undefined;
    const exact = (line.amountPico * CHARGE_DIVISOR) / rate;
    counts.set(line, ((exact + QUANTITY_ONE / 2n) / QUANTITY_ONE) * QUANTITY_ONE);
    slack += (line.roundingPico * CHARGE_DIVISOR) / rate;
  }
  return { counts, slack };
}

/** The circumstances that the line states; what it leaves open is ordinary. */
export const namedBy = ({ serviceTier, isBatch, longContext, region }: Meter): Circumstances => ({
  serviceTier,
  isBatch: isBatch ?? false,
  longContext: longContext ?? false,
  contextBand: 0,
  region,
});

function kindsOf(cells: readonly UsageCell[]): Kind[] {
  const kinds = new Map<string, Kind>();
  for (const { tokenClass, serviceTier, isBatch, longContext, region, quantity } of cells) {
    if (!isTokenClass(tokenClass)) continue;
    const kind = { tokenClass, serviceTier, isBatch, longContext, region };
    const key = JSON.stringify(kind);
    const known = kinds.get(key) ?? { ...kind, quantity: 0n };
    kinds.set(key, { ...known, quantity: known.quantity + quantity });
  }
  return [...kinds.values()];
}

/** A report that names no place at all leaves it open. */
function sidesOf(
  lines: readonly Meter[],
  kinds: readonly Kind[],
  counts: Counts,
  tellsPlace: boolean,
): Side[] {
  let sides = lines.map((line): Side => ({ lines: [line], kinds: [], more: counts.get(line) ?? 0n }));
  for (const kind of kinds) {
    const takes = (line: Meter) => {
      const others = lines.filter((other) => other !== line && other.tokenClass === line.tokenClass);
      return isUsageOf(line, others, { ...kind, region: tellsPlace ? kind.region : line.region });
    };
    const joined = sides.filter((side) => side.lines.some(takes));
    const merged: Side = {
      lines: joined.flatMap((side) => side.lines),
      kinds: [...joined.flatMap((side) => side.kinds), kind],
      more: sumOf(joined.map((side) => side.more)) - kind.quantity,
    };
    sides = [...sides.filter((side) => !joined.includes(side)), merged];
  }
  return sides;
}

type Moves = ReadonlyMap<Side, readonly Kind[]>;

/**
 * The source of each line's tokens that the report counts elsewhere, if naming one field otherwise balances all sides in
 * only one way.
 */
function movesOf(sides: readonly Side[], slack: bigint, rateOf: RateOf): Moves | undefined {
  for (const field of FIELDS) {
    const moves = movesBy(field, sides, slack, rateOf);
    if (moves) return moves;
  }
  return undefined;
}

function movesBy(field: Field, sides: readonly Side[], slack: bigint, rateOf: RateOf): Moves | undefined {
  const to = sides.filter((side) => side.more > 0n);
  const from = sides.filter((side) => side.more < 0n);
  const moves = new Map<Side, Kind[]>();
  const left = new Map(from.map((side) => [side, -side.more]));
  for (const side of to) {
    const [line, ...lines] = side.lines;
    if (!line || lines.length > 0) return undefined;
    const sources = from.filter(({ kinds }) => kinds.some((kind) => isElsewhere(field, kind, line)));
    const [source, ...others] = sources;
    if (!source || others.length > 0) return undefined;
    const arrived = takenFrom(source, side.more, field, line, rateOf);
    if (!arrived) return undefined;
    left.set(source, (left.get(source) ?? 0n) - side.more);
    moves.set(side, arrived);
  }
  return [...left.values()].every((rest) => absPico(rest) <= slack) ? moves : undefined;
}

/** Whether the kind would be on the line if the line named this field otherwise. */
function isElsewhere(field: Field, kind: Kind, line: Meter): boolean {
  return FIELDS.every((name) => {
    const [a, b] = [kind[name], line[name]];
    if (name === field) return a !== b && (name === 'region' || (a !== null && b !== null));
    return a === b || (name !== 'region' && (a === null || b === null));
  });
}

/** The dearest kinds first: less is asked for then, whichever of them it was. */
function takenFrom(
  source: Side,
  quantity: bigint,
  field: Field,
  line: Meter,
  rateOf: RateOf,
): Kind[] | undefined {
  const priced = source.kinds
    .filter((kind) => isElsewhere(field, kind, line))
    .map((kind) => ({ kind, rate: rateOf(kind.tokenClass, asUsed(kind, line)) ?? 0n }))
    .sort((a, b) => (a.rate === b.rate ? 0 : a.rate > b.rate ? -1 : 1));
  const taken: Kind[] = [];
  let left = quantity;
  for (const { kind } of priced) {
    const part = kind.quantity < left ? kind.quantity : left;
    if (part > 0n) taken.push({ ...kind, quantity: part });
    left -= part;
  }
  return left === 0n ? taken : undefined;
}

/** The report's words; what it leaves open is as the line names it. */
const asUsed = (kind: Kind, line: Meter): Circumstances => ({
  serviceTier: kind.serviceTier,
  isBatch: kind.isBatch ?? line.isBatch ?? false,
  longContext: kind.longContext ?? line.longContext ?? false,
  contextBand: 0,
  region: kind.region,
});

function countAs(line: Meter, quantity: bigint): void {
  if (line.quantity === quantity) return;
  line.quantity = quantity;
  line.quantitySource = 'usage';
  line.parts = [{ circumstances: namedBy(line), quantity }];
  line.split = 'bill';
  line.lengthTold = line.longContext !== null;
}

/** The parts of each line of a side. */
type Division = ReadonlyMap<Meter, MeterPart[]>;

/** Divides the tokens that are on no other side among the kinds of each line. Only what the amounts confirm is kept. */
function divide({ lines, kinds, more }: Side, moves: Moves, slack: bigint, rateOf: RateOf): void {
  if (kinds.length < 2 || more > slack || lines.every((line) => line.split === 'usage_report')) return;
  const gone = [...moves.values()].flat();
  const left = kinds.map((kind) => ({
    ...kind,
    quantity: kind.quantity - sumOf(gone.filter((one) => isSameUse(one, kind)).map((one) => one.quantity)),
  }));
  const held = atAgreedRates(lines, left, rateOf) ?? besideAnotherRate(lines, left, rateOf);
  for (const [line, parts] of held ?? [])
    Object.assign(line, { parts, split: 'usage_report', lengthTold: true });
}

/** A line at the rate of one kind holds that kind, and the last line the rest. */
function atAgreedRates(
  lines: readonly Meter[],
  kinds: readonly Kind[],
  rateOf: RateOf,
): Division | undefined {
  const left = new Map(kinds.map((kind) => [kind, kind.quantity]));
  const held = new Map<Meter, MeterPart[]>();
  for (const line of lines) {
    const [only, ...others] = kinds.filter((kind) =>
      isAtAgreedRates(holding(line, [partOf(kind, line, line.quantity ?? 0n)]), rateOf),
    );
    const rest = only && others.length === 0 ? (left.get(only) ?? 0n) - (line.quantity ?? 0n) : -1n;
    if (!only || rest < 0n || lines.length === 1) continue;
    held.set(line, [partOf(only, line, line.quantity ?? 0n)]);
    left.set(only, rest);
  }
  const [last, ...others] = lines.filter((line) => !held.has(line));
  if (others.length > 0) return undefined;
  if (last) held.set(last, restOf(last, left));
  const isConfirmed = [...held].every(
    ([line, parts]) => isWhole(line, parts) && isAtAgreedRates(holding(line, parts), rateOf),
  );
  return isConfirmed ? held : undefined;
}

const restOf = (line: Meter, left: ReadonlyMap<Kind, bigint>): MeterPart[] =>
  [...left].filter(([, quantity]) => quantity > 0n).map(([kind, quantity]) => partOf(kind, line, quantity));

const isWhole = (line: Meter, parts: readonly MeterPart[]): boolean =>
  sumOf(parts.map((part) => part.quantity)) === line.quantity;

/** Lines of a class, and kinds of its use, beyond which no division is looked for: there would be too many. */
const DIVIDED_MAX = 3;

/**
 * The division where a rate of the class is wrong. A line that holds two kinds confirms it alone by its right amount, whatever
 * the other lines cost; so does one ratio of charged to right amounts that it shares with every other line, since a division
 * has no number of its own left to choose. Undefined where no division or more than one is confirmed.
 */
function besideAnotherRate(
  lines: readonly Meter[],
  kinds: readonly Kind[],
  rateOf: RateOf,
): Division | undefined {
  if (lines.length < 2 || lines.length > DIVIDED_MAX || kinds.length > DIVIDED_MAX) return undefined;
  const confirmed = lines.flatMap((last) => {
    const others = lines.filter((line) => line !== last);
    return divisionsOf(others, kinds, last).filter((held) => {
      const parts = held.get(last) ?? [];
      if (parts.length < 2 || !isWhole(last, parts)) return false;
      const isAlike = (line: Meter) =>
        haveOneRatio(holding(last, parts), holding(line, held.get(line) ?? []), rateOf);
      return isAtAgreedRates(holding(last, parts), rateOf) || others.every(isAlike);
    });
  });
  const [only, ...more] = confirmed;
  return more.length === 0 ? only : undefined;
}

/** Every way in which each line holds one kind, and the last line the rest. */
function divisionsOf(lines: readonly Meter[], kinds: readonly Kind[], last: Meter): Division[] {
  const ways = lines.reduce<[Map<Meter, MeterPart[]>, Map<Kind, bigint>][]>(
    (known, line) =>
      known.flatMap(([held, left]) =>
        kinds.flatMap((kind): typeof known => {
          const rest = (left.get(kind) ?? 0n) - (line.quantity ?? 0n);
          const parts = [partOf(kind, line, line.quantity ?? 0n)];
          return rest < 0n ? [] : [[new Map(held).set(line, parts), new Map(left).set(kind, rest)]];
        }),
      ),
    [[new Map(), new Map(kinds.map((kind) => [kind, kind.quantity]))]],
  );
  return ways.map(([held, left]) => held.set(last, restOf(last, left)));
}

/** Whether two lines were charged at one ratio to what they hold, within the rounding of both. */
function haveOneRatio(a: Meter, b: Meter, rateOf: RateOf): boolean {
  const [rightA, rightB] = [rightProduct(a, rateOf), rightProduct(b, rateOf)];
  if (rightA <= 0n || rightB <= 0n || a.amountPico <= 0n) return false;
  const slack = (a.roundingPico + 1n) * rightB + (b.roundingPico + 1n) * rightA;
  return absPico(a.amountPico * rightB - b.amountPico * rightA) <= slack;
}

const partOf = (kind: Kind, line: Meter, quantity: bigint): MeterPart => ({
  circumstances: asUsed(kind, line),
  quantity,
});

const holding = (line: Meter, parts: MeterPart[]): Meter => ({ ...line, parts });

const isSameUse = (a: Kind, b: Kind): boolean => FIELDS.every((field) => a[field] === b[field]);

/** A line with what the report counts of its own kinds, and what came from elsewhere. */
function cross({ lines, kinds }: Side, arrived: readonly Kind[]): void {
  const [line] = lines;
  if (!line || line.quantity === null) return;
  line.parts = [...kinds, ...arrived].map((kind): MeterPart => {
    const part = { circumstances: asUsed(kind, line), quantity: kind.quantity };
    return kind.tokenClass === line.tokenClass ? part : { ...part, tokenClass: kind.tokenClass };
  });
  line.split = 'usage_report';
  line.lengthTold = true;
  line.crossed = true;
}
