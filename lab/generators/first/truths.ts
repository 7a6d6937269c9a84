/**
 * The truth about a world: the planted mistakes in exact dollars by day, and the visibilities at which they are
 * identifiable.
 */
import { grouped } from '../bills/grouped.js';
import type { CostRow, ExtraLine } from '../bills/ledger.js';
import { dayOf, dayText } from '../support/days.js';
import type { Truth } from '../world.js';
import type { Window } from './booking.js';
import { identifiableAt } from './identifiable.js';
import type { Plan, PlantedMistake } from './plan.js';
import type { Series } from './series.js';

type ByDay = Map<number, bigint>;

const nameOf = (accountId: string, model: string): string => `${accountId}|${model}`;

/** Billed dollars by account, model and day. */
function daysByModel(rows: readonly CostRow[]): Map<string, ByDay> {
  const sums = new Map<string, ByDay>();
  for (const { accountId, model, day, pico } of rows) {
    const name = nameOf(accountId, model);
    const days = sums.get(name) ?? new Map<number, bigint>();
    sums.set(name, days);
    days.set(day, (days.get(day) ?? 0n) + pico);
  }
  return sums;
}

/** The truths of a mistake: one for its closed days, and one for its provisional days, which prove nothing. */
export function mistakeTruths(
  plan: Plan,
  actual: readonly CostRow[],
  right: readonly CostRow[],
  extras: readonly ExtraLine[],
  window: Window,
): Truth[] {
  const [billed, due] = [daysByModel(actual), daysByModel(right)];
  return plan.mistakes.flatMap((planted, at) => {
    const { impact, rightPico } = impactOf(planted, billed, due, extras);
    const closed = new Map([...impact].filter(([day]) => day < window.provisionalFrom));
    const open = new Map([...impact].filter(([day]) => day >= window.provisionalFrom));
    const truths: Truth[] = [];
    if (closed.size > 0) truths.push(closedTruth(planted, `m${at}`, closed, rightPico));
    if (open.size > 0)
      truths.push({
        ...headOf(planted, `m${at}p`),
        impactByDay: byDayText(open),
        identifiableAt: new Set(),
        note: `${planted.mistake.form}; days that the provider may still restate`,
      });
    return truths;
  });
}

function impactOf(
  { series, mistake, startSeconds, endSeconds }: PlantedMistake,
  billed: Map<string, ByDay>,
  due: Map<string, ByDay>,
  extras: readonly ExtraLine[],
): { impact: ByDay; rightPico: bigint } {
  const impact: ByDay = new Map();
  let rightPico = 0n;
  const [firstDay, lastDay] = [dayOf(startSeconds), dayOf(endSeconds - 1)];
  const add = (day: number, pico: bigint) => impact.set(day, (impact.get(day) ?? 0n) + pico);
  for (const one of [series, ...(mistake.partner ? [mistake.partner] : [])]) {
    const name = nameOf(one.accountId, one.book.billed);
    for (const [day, pico] of billed.get(name) ?? []) add(day, pico);
    for (const [day, pico] of due.get(name) ?? []) {
      add(day, -pico);
      if (day >= firstDay && day <= lastDay) rightPico += pico;
    }
  }
  for (const line of extras)
    if (mistake.extras && line.kind === 'surcharge' && line.accountId === series.accountId)
      add(line.day, line.pico);
  for (const [day, pico] of impact) if (pico === 0n) impact.delete(day);
  return { impact: new Map([...impact].sort(([a], [b]) => a - b)), rightPico };
}

/** Mistakes of lines without a model belong to the account. */
const modelOf = ({ series, mistake }: PlantedMistake): string =>
  mistake.extras ? '' : (mistake.partner ?? series).book.billed;

function headOf(planted: PlantedMistake, id: string) {
  const { series, mistake } = planted;
  return {
    id,
    cause: mistake.cause,
    otherNames: mistake.otherNames ?? [],
    form: mistake.form,
    isViolation: true,
    provider: series.provider,
    accountId: series.accountId,
    model: modelOf(planted),
  };
}

function closedTruth(planted: PlantedMistake, id: string, closed: ByDay, rightPico: bigint): Truth {
  const total = [...closed.values()].reduce((sum, pico) => sum + pico, 0n);
  const effect = rightPico === 0n ? 1 : Math.abs(Number(total) / Number(rightPico));
  const { mistake, series } = planted;
  const { at, reason } = identifiableAt({ mistake, series, days: closed.size, effect });
  const of = mistake.partner ? `; usage of ${series.book.billed}` : '';
  return {
    ...headOf(planted, id),
    impactByDay: byDayText(closed),
    identifiableAt: at,
    note: `${mistake.form}${of}; ${reason}`,
  };
}

const byDayText = (days: ByDay): Map<string, bigint> =>
  new Map([...days].map(([day, pico]) => [dayText(day), pico]));

/** The truths of benign causes: their days, without dollars. */
export function benignTruths(plan: Plan, extras: readonly ExtraLine[], window: Window): Truth[] {
  const whole = { firstDay: window.firstDay, lastDay: window.lastDay };
  const planted = plan.confounders.map(({ series, confounder }) => ({ series, ...confounder }));
  for (const { book, wrong } of plan.wrongPrices)
    for (const series of plan.series.filter((one) => one.book === book))
      planted.push({
        series,
        form: `wrong_price_${wrong.agreement}`,
        cause: 'stale_price_reference',
        ...whole,
        note: 'the price list is wrong',
      });
  const taken = new Set([...plan.confounders, ...plan.mistakes].map(({ series }) => series));
  for (const series of plan.series) {
    if (series.circumstances.coverage < 1 && !taken.has(series))
      planted.push({
        series,
        form: 'small_loss',
        cause: 'unobserved_usage',
        ...whole,
        note: 'a few calls were lost on the way',
      });
    if (plan.recipe.pacific.includes(series.provider))
      planted.push({
        series,
        form: 'pacific_days',
        cause: 'timing_shift',
        ...whole,
        note: 'its days are Pacific ones',
      });
    if (plan.recipe.hasPriorityTier && series.provider === 'anthropic')
      planted.push({
        series,
        form: 'priority_tier',
        cause: 'other',
        ...whole,
        note: 'capacity that is paid for ahead',
      });
    if (plan.recipe.lacksCache)
      planted.push({
        series,
        form: 'otlp_only',
        cause: 'client_metering_error',
        ...whole,
        note: 'no cache tokens',
      });
  }
  return [
    ...planted.map((one, at) => benignTruth(one, at)),
    ...[
      ...grouped(
        extras.filter(({ kind }) => kind !== 'surcharge'),
        nameOfLine,
      ).values(),
    ].map(lineTruth),
  ];
}

function benignTruth(
  one: { series: Series; form: string; cause: string; firstDay: number; lastDay: number; note: string },
  at: number,
): Truth {
  const days = new Map<string, bigint>();
  for (let day = one.firstDay; day <= one.lastDay; day += 1) days.set(dayText(day), 0n);
  return {
    id: `b${at}`,
    cause: one.cause,
    otherNames: [],
    form: one.form,
    isViolation: false,
    provider: one.series.provider,
    accountId: one.series.accountId,
    model: one.series.book.billed,
    impactByDay: days,
    identifiableAt: new Set(),
    note: one.note,
  };
}

const nameOfLine = ({ accountId, label }: ExtraLine): string => `${accountId}|${label}`;

/** Fees or credits of an account, on lines without a model. */
function lineTruth(lines: readonly ExtraLine[], at: number): Truth {
  const [{ provider, accountId, kind, label, pico }] = lines as [ExtraLine];
  const hasLostSign = kind === 'credit' && pico > 0n;
  return {
    id: `l${at}`,
    cause: 'other',
    otherNames: [],
    form: hasLostSign ? 'credit_without_its_sign' : kind === 'fee' ? 'tool_fee' : 'credit_line',
    isViolation: false,
    provider,
    accountId,
    model: '',
    impactByDay: new Map(lines.map(({ day }) => [dayText(day), 0n])),
    identifiableAt: new Set(),
    note: hasLostSign ? `${label}, whose minus sign was lost` : label,
  };
}
