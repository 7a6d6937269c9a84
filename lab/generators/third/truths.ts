/** The truth about each mistake: its dollars by day, where it can be found, and which gate of HIGH it cannot pass. */
import type { GeneratedVisibility, Truth } from '../world.js';
import { closesAt, DAY, HOUR, textOfDay } from './calendar.js';
import type { Period, Series } from './company.js';
import type { Mistake } from './errors/kind.js';
import { CAUSES } from './telling.js';

/** Sums of a series on one day of the bill. */
export interface DaySums {
  /** Charges of its own calls, dollars of 1e-15. */
  charged: bigint;
  /** Tokens of all calls, and of those that clients report as they were. */
  tokens: number;
  exact: number;
  /** Calls of services that report neither the answering model nor an error's status. */
  unnamed: number;
}

export interface Judgement {
  series: Series;
  mistake: Mistake;
  /** By day of the bill, dollars of 1e-15. */
  impact: ReadonlyMap<number, bigint>;
  sums: ReadonlyMap<number, DaySums>;
  /** Of the series under whose model the usage was billed; undefined: its own. */
  partnerSums: ReadonlyMap<number, DaySums> | undefined;
  /** Mistakes of the series by day. */
  others: (day: number) => number;
  readAt: number;
}

const FEMTO_PER_PICO = 1_000n;
const CENT = 10_000_000_000_000n;
/** A difference below a cent and 0.1 % of the day is within tolerance. */
const TOLERANCE_DIVISOR = 1_000n;
/** Least reported share of tokens, for finding counts and for claiming them at HIGH. */
const FINDABLE = 0.9;
const CLAIMABLE = 0.99;
/** Amounts without quantities need complete reports, and a difference that stands out. */
const COMPLETE = 0.995;
const V1_DIVISOR = 20n;
const V0_DIVISOR = 10n;

/** A truth for each set of days with the same visibilities and gate. */
export function truthsOf(judgement: Judgement): Truth[] {
  const { mistake, series, impact } = judgement;
  const { kind, partner } = mistake;
  const groups = new Map<string, { days: Map<string, bigint>; seen: GeneratedVisibility[]; gate: string }>();
  for (const [day, femto] of impact) {
    if (femto === 0n) continue;
    const { seen, gate } = labelOf(judgement, day, femto);
    const name = `${seen.join()} ${gate}`;
    const group = groups.get(name) ?? { days: new Map<string, bigint>(), seen, gate };
    groups.set(name, group);
    group.days.set(textOfDay(day), femto / FEMTO_PER_PICO);
  }
  return [...groups.values()].map(({ days, seen, gate }, at) => ({
    id: `${mistake.id}.${at + 1}`,
    cause: kind.cause,
    otherNames: kind.otherNames ?? [],
    form: kind.form,
    isViolation: true,
    ...placeOf(partner ?? series),
    impactByDay: days,
    identifiableAt: new Set(seen),
    ...(gate === '' ? {} : { missingGate: gate }),
    note: noteOf(mistake),
  }));
}

const coverageOf = (sum: DaySums | undefined): number => (sum && sum.tokens > 0 ? sum.exact / sum.tokens : 1);

function noteOf({ keyId, isElsewhere, from, to }: Mistake): string {
  const scope = keyId ?? (isElsewhere === undefined ? 'all calls' : isElsewhere ? 'dearer place' : 'global');
  return `${scope}, ${((to - from) / DAY).toFixed(1)} days from hour ${Math.floor((from % DAY) / HOUR)}`;
}

function labelOf(
  judgement: Judgement,
  day: number,
  femto: bigint,
): { seen: GeneratedVisibility[]; gate: string } {
  const { series, mistake, sums, readAt } = judgement;
  const { kind } = mistake;
  const sum = sums.get(day);
  const size = femto < 0n ? -femto : femto;
  const charged = sum?.charged ?? 0n;
  const nothing = (gate: string) => ({ seen: [], gate });
  if (readAt < closesAt(series.account.provider, day)) return nothing('closed_period');
  if (size < CENT || size * TOLERANCE_DIVISOR < charged) return nothing('residual_within_tolerance');
  const isUntold = series.perMille < 1_000 && !series.isContractEntered;
  if (isUntold && kind.proof === 'rate') return nothing('price_source_dated');
  const coverage = Math.min(coverageOf(sum), coverageOf(judgement.partnerSums?.get(day)));
  if (kind.proof === 'count' && coverage < FINDABLE) return nothing('coverage_or_sealed_scope');
  const seen = kind.shownAt.filter((visibility) => {
    if (visibility === 'V3') return true;
    if (mistake.keyId !== undefined || mistake.isElsewhere !== undefined || isUntold) return false;
    if (visibility === 'V2') return coverage >= FINDABLE && isWhole(mistake, day);
    if (!hasPlainAmounts(judgement, day) || coverage < COMPLETE) return false;
    return size * (visibility === 'V1' ? V1_DIVISOR : V0_DIVISOR) >= charged;
  });
  return { seen, gate: gateOf(judgement, sum, coverage, isUntold) };
}

/** The first gate of HIGH (design of grades) that the evidence of the day cannot pass; '': none. */
function gateOf(
  { series, mistake }: Judgement,
  sum: DaySums | undefined,
  coverage: number,
  isUntold: boolean,
): string {
  const { kind, isElsewhere } = mistake;
  const { tariff, isContractEntered } = series;
  if (isUntold) return 'price_source_dated';
  if (kind.proof === 'count' && coverage < CLAIMABLE) return 'coverage_or_sealed_scope';
  if (kind.needs === 'answers' && (sum?.unnamed ?? 0) > 0) return 'evidence_needed';
  if (kind.proof === 'rate' && !tariff.isAgreed && !tariff.isDocumented && !isContractEntered)
    return 'price_sources_agree';
  // A source lists another price for the regional profile of this model.
  if (tariff.told === DISPUTED_ELSEWHERE && kind.proof === 'rate' && isElsewhere !== false)
    return kind.cause === 'region_uplift_misapplied' ? '' : 'price_sources_agree';
  return '';
}

const DISPUTED_ELSEWHERE = 'anthropic.claude-sonnet-4-6';

function isWhole({ from, to }: Mistake, day: number): boolean {
  return from <= day * DAY && to >= (day + 1) * DAY;
}

/** Whether amounts by class alone could show it: one mistake on whole days by UTC, and one kind of use in a line. */
function hasPlainAmounts({ series, mistake, others }: Judgement, day: number): boolean {
  const { account, services } = series;
  const isCloud = account.provider === 'aws_bedrock' || account.provider === 'azure_openai';
  const isMixed = services.some((one) => one.batchShare > 0 || one.tierShare > 0 || one.elsewhereShare > 0);
  return (
    account.clockHours === 0 &&
    !account.lateFrom.has(day) &&
    !account.lateFrom.has(day - 1) &&
    others(day) === 1 &&
    isWhole(mistake, day) &&
    !(isCloud && isMixed)
  );
}

/** Look-alikes that are no mistake of the provider, on their days. */
export function benignTruths(series: Series, period: Period): Truth[] {
  const found: { cause: string; form: string; from: number; to: number }[] = [];
  const whole = { from: period.first, to: period.last };
  for (const { faults } of series.services)
    for (const { form, from, to } of faults) {
      const days = { from: Math.max(period.first, Math.floor(from / DAY)), to: Math.floor((to - 1) / DAY) };
      if (CAUSES[form] !== '') found.push({ cause: CAUSES[form], form, ...days });
    }
  if (series.perMille < 1_000) found.push({ cause: 'contract_terms', form: 'contract', ...whole });
  if (series.account.clockHours !== 0) found.push({ cause: 'timing_shift', form: 'clock', ...whole });
  for (const day of series.account.lateFrom.keys())
    found.push({ cause: 'timing_shift', form: 'booked_late', from: day, to: day + 1 });
  return found.map(({ cause, form, from, to }, at) => ({
    id: `${series.id}~${at + 1}`,
    cause,
    otherNames: [],
    form,
    isViolation: false,
    ...placeOf(series),
    impactByDay: new Map(
      Array.from({ length: Math.min(to, period.last) - from + 1 }, (_, n) => [textOfDay(from + n), 0n]),
    ),
    identifiableAt: new Set(),
    note: '',
  }));
}

/** Bedrock bills two profiles of one model; the truth names the global one. */
function placeOf({ account, tariff }: Series): Pick<Truth, 'provider' | 'accountId' | 'model'> {
  const isProfiled = account.provider === 'aws_bedrock' && tariff.elsewhere > 1_000;
  return {
    provider: account.provider,
    accountId: account.accountId,
    model: isProfiled ? `global.${tariff.told}` : tariff.billed,
  };
}
