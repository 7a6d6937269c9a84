/** Use of unknown keys and of keys after their end: rows of the bill name the key, and no event does. */
import type { KeyUse, SuspectKey } from '../../../billing/providerKeys.js';
import { TOKEN_CLASSES, type TokenClass } from '../../../events/event.js';
import { absPico, type Pico } from '../../../money.js';
import { microsOfDay } from '../../../period.js';
import { DayRates, ORDINARY } from '../../audit/dayRates.js';
import type { Visibility } from '../../matching/cells.js';
import {
  apportion,
  chargeProduct,
  gradeAt,
  lowerOf,
  picoFromChargeProduct,
} from '../../matching/classLines.js';
import { AFTER_REVOCATION, BURST, KEY_DAY_MIN_PICO, SHORT_PERCENT } from '../calibration.js';
import type {
  ExplainedDay,
  Finding,
  FindingDay,
  FindingLine,
  Gate,
  SeriesExplanation,
} from '../series/finding.js';
import { bitsOf, calibrated, calibrationSteps, gradedAs } from '../series/gates.js';
import { addedLines, footed, keepDays, leastOf, placeOf, shareOfImpact, sumPico } from './accountFindings.js';
import type { AccountInput } from './explainAccount.js';

/** Kinds that may be such use under another name. */
const MAY_BE_USE: ReadonlySet<string> = new Set([
  'unexplained',
  'unobserved_usage',
  'token_count_inflation',
  'timing_shift',
  'client_metering_error',
]);

/** One key's use on the days of one series on which it was not observed. */
interface UnseenUse {
  key: SuspectKey;
  series: SeriesExplanation;
  days: { day: string; visibility: Visibility; usedPico: Pico; billedPico: Pico; lines: FindingLine[] }[];
  /** Of the account's days, how many have use of the key. */
  share: number;
}

/**
 * The findings with those of suspect keys: their use by day and model. The rows that name a key prove its use, whatever
 * else the day's counts lack or have too many; only where the calls seen account for the whole bill of the day, the use is
 * among them. Findings that may be the same use give way on these days; what `explained` holds is used up already.
 */
export function findSuspectUse(
  input: AccountInput,
  findings: readonly Finding[],
  explained: readonly Finding[] = [],
): Finding[] {
  const keys = input.suspectKeys
    .filter((key) => key.provider === input.provider && key.providerAccountId === input.accountId)
    .sort((a, b) => (a.providerKeyId + a.reason < b.providerKeyId + b.reason ? -1 : 1));
  const left = new Map<string, Pico>(
    explained.flatMap(({ model, days }) => days.map((one) => [placeOf(model, one.day), 0n] as const)),
  );
  const found = keys.flatMap((key) =>
    input.series.flatMap((series) => unseenUse(key, series, input, { left, findings }) ?? []),
  );
  let rest = [...findings];
  for (const { series, days } of found) {
    const taken = new Map(days.map((one) => [one.day, one.usedPico]));
    rest = rest.flatMap((finding) =>
      finding.model === series.model && finding.direction === 'overcharge' && MAY_BE_USE.has(finding.kind)
        ? (withoutUse(finding, taken) ?? [])
        : [finding],
    );
  }
  return [...rest, ...found.map((use) => findingOf(use, input))];
}

/** Days on which the key was used, other than those on which the calls seen account for all that was billed. */
function unseenUse(
  key: SuspectKey,
  series: SeriesExplanation,
  input: AccountInput,
  { left, findings }: { left: Map<string, Pico>; findings: readonly Finding[] },
): UnseenUse | undefined {
  const misrated = new Set(
    findings.flatMap(({ model, days }) =>
      model === series.model ? days.flatMap((one) => (one.ratePico > 0n ? [one.day] : [])) : [],
    ),
  );
  const residuals = new Map(series.residuals.map((one) => [one.day, one]));
  const days = series.days.flatMap((day) => {
    const uses = (key.uses ?? []).filter((use) => use.day === day.day && isOf(use, series.model, input));
    // Beside a wrong rate the key's use is held at the agreed one: the rest is the rate's.
    const isMisrated = misrated.has(day.day);
    const cost = sumPico(uses.map((use) => costOf(use, series.model, input, isMisrated)));
    const usedPico = cost < day.billedPico ? cost : day.billedPico;
    const residual = residuals.get(day.day);
    const place = placeOf(series.model, day.day);
    const excess = left.get(place) ?? excessOf(day, residual);
    if (residual?.provisional || usedPico < KEY_DAY_MIN_PICO) return [];
    if (absPico(excess) * 100n <= usedPico * SHORT_PERCENT) return [];
    left.set(place, excess - usedPico);
    const lines = uses.flatMap((use) => linesOf(use, series.model, input, isMisrated));
    return [{ day: day.day, visibility: day.visibility, usedPico, billedPico: day.billedPico, lines }];
  });
  const share = shareOfDays(key, series, input);
  if (days.length === 0 || (key.reason === 'unknown' && share > BURST)) return undefined;
  return { key, series, days, share };
}

/**
 * An unregistered key that is used day by day is a service of the organization's own, not instrumented. A
 * model that the key alone uses has no other days, so the account's days count.
 */
function shareOfDays(
  { uses = [] }: SuspectKey,
  { model, days }: SeriesExplanation,
  input: AccountInput,
): number {
  const all = new Set(input.series.flatMap((one) => one.days.map(({ day }) => day)));
  const known = new Set(days.map(({ day }) => day));
  const used = new Set(
    uses.flatMap((use) => (known.has(use.day) && isOf(use, model, input) ? [use.day] : [])),
  );
  return used.size / Math.max(1, all.size);
}

/**
 * Whether the use is of this model: bills may name it by its date or another name, a series has the name of its price entry.
 * Another model whose name begins alike is another one.
 */
function isOf(use: KeyUse, model: string, { provider, prices }: AccountInput): boolean {
  const rates = new DayRates(prices.agreed, provider, microsOfDay(use.day));
  return use.model === model || rates.nameOf(rates.entryKey(use.model)) === model;
}

/**
 * Cost of the use as billed, or at the agreed rates of ordinary requests where these are lower or nothing was billed.
 */
function costOf(use: KeyUse, model: string, input: AccountInput, atAgreed = false): Pico {
  if (use.billedPico !== null && !atAgreed) return use.billedPico;
  const agreed = sumPico([...costsOf(use, model, input).values()]);
  return use.billedPico !== null && (agreed === 0n || agreed > use.billedPico) ? use.billedPico : agreed;
}

/** By class, at the agreed rates of ordinary requests. */
function costsOf(use: KeyUse, model: string, { provider, prices }: AccountInput): Map<TokenClass, Pico> {
  const rates = new DayRates(prices.agreed, provider, microsOfDay(use.day));
  return new Map(
    TOKEN_CLASSES.flatMap((name) => {
      const quantity = use.quantities[name] ?? 0n;
      const rate = rates.rate(model, name, ORDINARY)?.rate ?? 0n;
      return quantity === 0n ? [] : [[name, picoFromChargeProduct(chargeProduct(quantity, rate))] as const];
    }),
  );
}

/** Makes a line for each class that the key used, or one for all where the bill states no quantities; expects no use. */
function linesOf(use: KeyUse, model: string, input: AccountInput, atAgreed: boolean): FindingLine[] {
  const costs = [...costsOf(use, model, input)];
  const whole = costOf(use, model, input, atAgreed);
  const line = (tokenClass: FindingLine['tokenClass'], quantity: bigint | null, billedPico: Pico) => ({
    tokenClass,
    serviceTier: 'standard',
    isBatch: null,
    longContext: null,
    region: null,
    billedQuantity: quantity,
    observedQuantity: 0n,
    billedRate: null,
    expectedRate: null,
    billedPico,
    expectedPico: 0n,
  });
  if (!costs.some(([, cost]) => cost > 0n)) return [line('other', null, whole)];
  const shares = apportion(
    whole,
    costs.map(([, cost]) => cost),
  );
  return costs.map(([name], at) => line(name, use.quantities[name] ?? 0n, shares[at] ?? 0n));
}

/** The unobserved usage on a day's bill, at the agreed rates. */
function excessOf(day: ExplainedDay, residual: SeriesExplanation['residuals'][number] | undefined): Pico {
  if (residual && residual.expectedOfBilledPico !== null && residual.expectedOfObservedPico !== null)
    return residual.expectedOfBilledPico - residual.expectedOfObservedPico;
  if (day.coverage === null) return 0n;
  return (day.billedPico * BigInt(Math.round((1 - day.coverage) * 1_000_000))) / 1_000_000n;
}

/** The rest of a finding once a key's use is taken out of its days; a day with next to no rest is removed. */
function withoutUse(finding: Finding, taken: ReadonlyMap<string, Pico>): Finding | undefined {
  const remains = (day: FindingDay) => day.impactPico - (taken.get(day.day) ?? 0n);
  const isLeft = (day: FindingDay) =>
    !taken.has(day.day) || remains(day) * 100n > absPico(day.impactPico) * SHORT_PERCENT;
  const left = new Set(finding.days.filter(isLeft).map((one) => one.day));
  const kept = keepDays(finding, (day) => left.has(day));
  if (!kept) return undefined;
  const days = kept.days.map((day) => {
    const used = taken.get(day.day) ?? 0n;
    return used === 0n
      ? day
      : {
          ...day,
          expectedPico: day.expectedPico + used,
          impactPico: day.impactPico - used,
          volumePico: day.volumePico - used,
        };
  });
  const impactPico = sumPico(days.map((one) => one.impactPico));
  const recoverablePico = kept.recoverablePico === 0n ? 0n : impactPico;
  return {
    ...kept,
    days,
    impactPico,
    recoverablePico,
    lines: shareOfImpact(kept.lines, impactPico, kept.impactPico),
  };
}

const REASON: Readonly<Record<SuspectKey['reason'], string>> = {
  unknown: 'which is not registered',
  billed_after_revocation: 'which was revoked before',
};

/**
 * Only the organization knows whether an unknown key is its own. Its own services go on once they run, so what was
 * seen on a share of the days alone is by that share as likely theirs.
 */
function probabilityOf({ key, share }: UnseenUse): number {
  return key.reason === 'billed_after_revocation' ? AFTER_REVOCATION : 1 / (1 + share);
}

function findingOf(use: UnseenUse, input: AccountInput): Finding {
  const { key, series, days: used } = use;
  const isRevoked = key.reason === 'billed_after_revocation';
  // A key that is only not registered may be the organization's own.
  const missing: Gate[] = isRevoked ? [] : ['evidence_needed'];
  const visibility = leastOf(used.map((one) => one.visibility));
  const likely = probabilityOf(use);
  const of = { blame: 'provider', missing, visibility } as const;
  const probability = calibrated(likely, of);
  const days = used.map(
    ({ day, usedPico, billedPico }): FindingDay => ({
      day,
      billedPico,
      expectedPico: billedPico - usedPico,
      impactPico: usedPico,
      ratePico: 0n,
      volumePico: usedPico,
      ownPricingPico: 0n,
      probability,
    }),
  );
  const impactPico = sumPico(days.map((one) => one.impactPico));
  const waterfall = [
    { signal: 'provider key', level: `${key.reason}, ${days.length} days`, bits: bitsOf(likely) },
    ...calibrationSteps(likely, of),
  ];
  return {
    kind: 'unauthorized_key_usage',
    variant: isRevoked ? 'after_revocation' : 'unknown_key',
    direction: 'overcharge',
    blame: 'provider',
    claimable: true,
    provider: input.provider,
    accountId: input.accountId,
    model: series.model,
    days,
    lines: footed(addedLines(used.flatMap(({ lines }) => lines)), impactPico),
    impactPico,
    recoverablePico: impactPico,
    grade: lowerOf(
      gradeAt(gradedAs(probability, { missing, waterfall }), missing.length, visibility),
      isRevoked ? 'HIGH' : 'LOW',
    ),
    probability,
    matchProbability: AFTER_REVOCATION,
    visibility,
    provisional: false,
    missing,
    next: { kind: 'unobserved_usage', odds: likely / (1 - likely) },
    waterfall,
    cause: `The bill charges for key ${key.providerKeyId}, ${REASON[key.reason]}, and no recorded call uses it.`,
    advice: isRevoked
      ? ['Tell the provider when the key was revoked, and ask which addresses used it afterwards.']
      : [
          'Register the key if it is yours; if it is not, revoke it at the provider now and ask which addresses used it.',
        ],
    critical: false,
    weightSet: input.weights.version,
  };
}
