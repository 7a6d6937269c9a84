/**
 * The price of calls that are billed as another model's. Rates of tiers, batch and length differ, so each kind of use is
 * priced by itself: as the calls name it, or as the bill and the usage report divide the excess.
 */
import { TOKEN_CLASSES, type TokenClass } from '../../../events/event.js';
import { absPico, type Pico } from '../../../money.js';
import type { DayRates } from '../../audit/dayRates.js';
import { apportion, chargeProduct, picoFromChargeProduct, tolerancePico } from '../../matching/classLines.js';
import { MISMATCH_MAX } from '../calibration.js';
import type { ResidualDay, ResidualUse } from '../series/finding.js';

/** A model's side of a move: what it has too much or lacks, and its own rates of the day. */
export interface Half {
  readonly model: string;
  readonly residual: ResidualDay;
  readonly rates: DayRates;
}

/**
 * The record that shows the moved calls' uses. `calls`: calls that were seen and are not on the bill of their model, and
 * the other model's bill is the sum of its own calls and these. That holds whatever other calls were not seen. `report`: the
 * bill of the other model, whose amounts confirm how it and its usage report divide the tokens.
 */
export type ShownBy = 'calls' | 'report';

export interface MovedCost {
  /** By class, at the rates of the billed model and of the used one, each use at its own. */
  readonly asBilled: ReadonlyMap<TokenClass, Pico>;
  readonly asUsed: ReadonlyMap<TokenClass, Pico>;
  /** Null: the uses are known, and the bill does not confirm their amounts. */
  readonly shownBy: ShownBy | null;
}

/** Quantities by class and use, 1e-12 tokens. */
type Uses = ReadonlyMap<string, MovedPart>;
type MovedPart = Omit<ResidualUse, 'region' | 'seen' | 'billed'> & { readonly quantity: bigint };

/** The cost of a day's moved calls; undefined where no record shows which uses they are. `mismatch`: of the halves. */
export function costOfMoved(to: Half, from: Half, mismatch: number): MovedCost | undefined {
  const seen = movedOf(from, ({ seen, billed }) => seen - billed);
  const reported = isChargedAsPriced(to.residual)
    ? movedOf(to, ({ seen, billed }) => billed - seen)
    : undefined;
  if (seen && (reported ? areWithin(seen, reported, to) : isBillOfBoth(to, seen, mismatch)))
    return costOf(seen, to, from, 'calls');
  if (reported) return costOf(reported, to, from, 'report');
  return seen && costOf(seen, to, from, null);
}

/** The bill charges the day as its lines are priced, so that its amounts confirm the division of its tokens. */
const isChargedAsPriced = ({ billedPico, expectedOfBilledPico }: ResidualDay): boolean =>
  expectedOfBilledPico !== null &&
  absPico(billedPico - expectedOfBilledPico) <= tolerancePico(billedPico, 0n);

/**
 * One side's difference by use. Undefined where its bill's division is not confirmed, or where a use differs the other way:
 * calls that do not name their tier are on another line than they seem to be.
 */
function movedOf(half: Half, differenceOf: (use: ResidualUse) => bigint): Uses | undefined {
  const { uses, billedPico } = half.residual;
  if (uses.length === 0 || (billedPico !== 0n && !isChargedAsPriced(half.residual))) return undefined;
  const moved = new Map<string, MovedPart>();
  for (const use of uses) {
    const { tokenClass, serviceTier, isBatch, longContext } = use;
    const key = JSON.stringify([tokenClass, serviceTier, isBatch, longContext]);
    const quantity = (moved.get(key)?.quantity ?? 0n) + differenceOf(use);
    moved.set(key, { tokenClass, serviceTier, isBatch, longContext, quantity });
  }
  let [gained, lost] = [0n, 0n];
  for (const part of moved.values()) {
    const cost = costOfPart(part, half, part.quantity);
    if (cost === undefined) return undefined;
    if (cost > 0n) gained += cost;
    else lost -= cost;
  }
  return gained > 0n && Number(lost) <= MISMATCH_MAX * Number(gained) ? moved : undefined;
}

/** Whether the other bill has at least these tokens too many, use by use. */
function areWithin(seen: Uses, reported: Uses, to: Half): boolean {
  let [whole, beyond] = [0n, 0n];
  for (const [key, part] of seen) {
    const cost = costOfPart(part, to, part.quantity);
    const more = part.quantity - (reported.get(key)?.quantity ?? 0n);
    const over = more > 0n ? costOfPart(part, to, more) : 0n;
    if (cost === undefined || over === undefined) return false;
    whole += absPico(cost);
    beyond += over;
  }
  return Number(beyond) <= MISMATCH_MAX * Number(whole);
}

/**
 * Whether the bill's amounts are what the model's own calls and the moved ones cost, class by class. Own calls that were
 * not seen are taken to be like those that were; the few tokens by which the halves differ may be of another use.
 */
function isBillOfBoth(to: Half, moved: Uses, mismatch: number): boolean {
  const { lines, uses, billedPico } = to.residual;
  const own = uses.map(({ seen, ...use }) => ({ ...use, quantity: seen }));
  let [apart, whole] = [0n, 0n];
  for (const tokenClass of TOKEN_CLASSES) {
    const billed = lines.filter((line) => line.tokenClass === tokenClass);
    const moving = sumOf([...moved.values()], tokenClass, to);
    const seen = sumOf(own, tokenClass, to);
    if (!moving || !seen) return false;
    const charged = billed.reduce((sum, line) => sum + line.billedPico, 0n);
    const ownBilled = billed.reduce((sum, line) => sum + (line.billedQuantity ?? 0n), 0n) - moving.quantity;
    const ownPico = seen.quantity > 0n ? (seen.pico * ownBilled) / seen.quantity : 0n;
    apart += absPico(charged - moving.pico - ownPico);
    whole += absPico(moving.pico);
  }
  const slack = BigInt(Math.round(Math.min(mismatch, MISMATCH_MAX) * Number(whole)));
  return apart <= tolerancePico(billedPico, 0n) + slack;
}

function sumOf(parts: readonly MovedPart[], tokenClass: TokenClass, half: Half) {
  let [quantity, pico] = [0n, 0n];
  for (const part of parts) {
    if (part.tokenClass !== tokenClass || part.quantity === 0n) continue;
    const cost = costOfPart(part, half, part.quantity);
    if (cost === undefined) return undefined;
    quantity += part.quantity;
    pico += cost;
  }
  return { quantity, pico };
}

function costOf(moved: Uses, to: Half, from: Half, shownBy: ShownBy | null): MovedCost | undefined {
  const [asBilled, asUsed] = [new Map<TokenClass, Pico>(), new Map<TokenClass, Pico>()];
  for (const part of moved.values()) {
    const billed = costOfPart(part, to, part.quantity);
    const used = costOfPart(part, { ...from, residual: to.residual }, part.quantity);
    if (billed === undefined || used === undefined) return undefined;
    asBilled.set(part.tokenClass, (asBilled.get(part.tokenClass) ?? 0n) + billed);
    asUsed.set(part.tokenClass, (asUsed.get(part.tokenClass) ?? 0n) + used);
  }
  return { asBilled, asUsed, shownBy };
}

/**
 * A quantity of a use at the model's rates, in the places in which the bill has such use. Undefined where no source lists
 * the rate.
 */
function costOfPart(part: Omit<MovedPart, 'quantity'>, half: Half, quantity: bigint): Pico | undefined {
  const { tokenClass, serviceTier, isBatch, longContext } = part;
  const places = placesOf(part, half.residual);
  const shares = apportion(quantity, [...places.values()]);
  let product = 0n;
  for (const [at, region] of [...places.keys()].entries()) {
    const circumstances = { serviceTier, isBatch, longContext, contextBand: 0, region };
    const found = half.rates.rate(half.model, tokenClass, circumstances);
    if (!found || found.assumed) return undefined;
    product += chargeProduct(shares[at] ?? 0n, found.rate);
  }
  return picoFromChargeProduct(product);
}

/** Billed quantities of a class by place; without any, no place. */
function placesOf({ tokenClass }: { tokenClass: TokenClass }, { uses }: ResidualDay) {
  const places = new Map<string | null, bigint>();
  for (const use of uses)
    if (use.tokenClass === tokenClass && use.billed > 0n)
      places.set(use.region, (places.get(use.region) ?? 0n) + use.billed);
  return places.size > 0 ? places : new Map<string | null, bigint>([[null, 1n]]);
}
