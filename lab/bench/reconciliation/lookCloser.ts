/**
 * Prints the largest misses and false findings with the numbers that the engine received, without the generated
 * truth.
 */
import type { Judged } from './judge.js';
import { foundOf, type Matched, placeNamer, type SaidDay, type TrueDay } from './matchTruth.js';

const SHOWN = 12;
const usd = (pico: bigint | null) => (pico === null ? '?' : (Number(pico) / 1e12).toFixed(6));
const quantity = (scaled: bigint | null) => (scaled === null ? '?' : (Number(scaled) / 1e12).toString());

/** The series-days with the most missed dollars, and those with the most false or misnamed dollars, as text. */
export function lookCloser(judged: Judged, matched: Matched, atMicros: bigint): string {
  const missed = worstBySeries(
    matched.truths.filter((one) => one.identifiable),
    (one) => one.impact - foundOf(one, 'LOW'),
    (one) => `${one.truth.id}`,
  );
  const wrong = worstBySeries(
    matched.said.filter(({ finding }) => finding.grade !== 'UNVERIFIED'),
    (one) => one.claimed - one.typed,
    (one) => `${one.place} ${one.finding.kind} ${one.finding.variant}`,
  );
  const look = (place: string, accountId: string, day: string) =>
    seen(judged, atMicros, place, accountId, day);
  return [
    '== missed ==',
    ...missed.map(
      ({ worst, sum, days }) =>
        `${missText(worst, sum, days)}\n${look(worst.place, worst.truth.accountId, worst.day)}`,
    ),
    '== false or misnamed ==',
    ...wrong.map(
      ({ worst, sum, days }) =>
        `${falseText(worst, sum, days, matched)}\n${look(worst.place, worst.finding.accountId, worst.day)}`,
    ),
  ].join('\n');
}

interface Worst<T> {
  worst: T;
  sum: bigint;
  days: number;
}

/** One example for each series and mistake: the day with the most dollars. */
function worstBySeries<T>(
  items: readonly T[],
  dollarsOf: (item: T) => bigint,
  keyOf: (item: T) => string,
): Worst<T>[] {
  const groups = new Map<string, Worst<T>>();
  for (const item of items) {
    const dollars = dollarsOf(item);
    if (dollars <= 0n) continue;
    const group = groups.get(keyOf(item));
    if (!group) groups.set(keyOf(item), { worst: item, sum: dollars, days: 1 });
    else {
      if (dollars > dollarsOf(group.worst)) group.worst = item;
      group.sum += dollars;
      group.days += 1;
    }
  }
  return [...groups.values()].sort((a, b) => (a.sum < b.sum ? 1 : -1)).slice(0, SHOWN);
}

function missText(one: TrueDay, sum: bigint, days: number): string {
  return `\n$${usd(sum)} of ${one.truth.cause} (${one.direction}) missed on ${days} days of ${one.place}; on ${one.day} $${usd(one.impact)}, found $${usd(foundOf(one, 'LOW'))}`;
}

function falseText(one: SaidDay, sum: bigint, days: number, matched: Matched): string {
  const { finding } = one;
  const truths = matched.truths
    .filter((truth) => truth.place === one.place && truth.day === one.day)
    .map(({ truth, impact, direction }) => `${truth.cause} (${direction}) $${usd(impact)}`);
  return `\n$${usd(sum)} of ${finding.kind}/${finding.variant} ${finding.grade} p=${finding.probability.toFixed(4)} false or misnamed on ${days} days of ${one.place}; on ${one.day} claimed $${usd(one.claimed)}, right $${usd(one.right)}; true: ${truths.join(', ') || 'no mistake'}; missing ${finding.missing.join(',')}; ${finding.cause}`;
}

/** The engine's input for the day and all of its findings. */
function seen(judged: Judged, atMicros: bigint, place: string, accountId: string, day: string): string {
  const nameOf = placeNamer(judged.prices, atMicros);
  const lines: string[] = [];
  for (const { provider, days } of judged.inputs) {
    const input = days.find((one) => one.day === day);
    if (!input || !place.startsWith(`${provider} `)) continue;
    const isHere = (cell: { model: string | null; accountId: string }) =>
      cell.model !== null &&
      nameOf(provider, cell.model) === place &&
      (accountId === '' || cell.accountId === accountId || cell.accountId === '');
    for (const cell of input.billed.filter(isHere))
      lines.push(
        `  billed ${cell.tokenClass} tier=${cell.serviceTier} batch=${cell.isBatch} long=${cell.longContext} region=${cell.region} rows=${cell.rowCount} q=${quantity(cell.quantity)} $${usd(cell.amountPico)}`,
      );
    for (const [words, sum] of summed(input.usage.filter(isHere), usageWords, (cell) => cell.quantity))
      lines.push(`  usage ${words} q=${quantity(sum)}`);
    for (const [words, tokens] of observedTokens(input.observed.filter(isHere)))
      lines.push(`  observed ${words} ${tokens}`);
  }
  for (const { bucket } of judged.buckets)
    if (
      new Date(Number(bucket.startMicros / 1_000n)).toISOString().startsWith(day) &&
      place.endsWith(` ${bucket.model}`) &&
      (accountId === '' || bucket.accountId === '' || bucket.accountId === accountId)
    )
      lines.push(
        `  bucket ${bucket.accountId} ${bucket.grade} ${bucket.visibility} provisional=${bucket.provisional} billed $${usd(bucket.providerCostPico)} ours $${usd(bucket.ourCostPico)} expected $${usd(bucket.expectedCostPico)} rate $${usd(bucket.ratePico)} volume $${usd(bucket.volumePico)}`,
      );
  for (const finding of judged.findings) {
    const said = finding.days.find((one) => one.day === day);
    const isHere = accountId === '' || finding.accountId === '' || finding.accountId === accountId;
    if (said && isHere && nameOf(finding.provider, finding.model) === place)
      lines.push(
        `  said ${finding.kind}/${finding.variant} ${finding.direction} ${finding.grade} p=${finding.probability.toFixed(4)} day p=${said.probability.toFixed(4)} $${usd(said.impactPico)} of ${finding.days[0]?.day}..${finding.days.at(-1)?.day} missing=${finding.missing.join(',')} next=${finding.next?.kind ?? '-'} ${finding.next?.odds.toFixed(1) ?? ''}`,
      );
  }
  return lines.join('\n');
}

type UsageCell = Judged['inputs'][number]['days'][number]['usage'][number];
type ObservedCell = Judged['inputs'][number]['days'][number]['observed'][number];

const usageWords = (cell: UsageCell) =>
  `${cell.tokenClass} tier=${cell.serviceTier} batch=${cell.isBatch} long=${cell.longContext} region=${cell.region}`;

function summed<T>(items: readonly T[], wordsOf: (item: T) => string, countOf: (item: T) => bigint) {
  const sums = new Map<string, bigint>();
  for (const item of items) sums.set(wordsOf(item), (sums.get(wordsOf(item)) ?? 0n) + countOf(item));
  return sums;
}

function observedTokens(cells: readonly ObservedCell[]): Map<string, string> {
  const groups = new Map<string, ObservedCell[]>();
  for (const cell of cells) {
    const words = `${cell.model} tier=${cell.serviceTier} batch=${cell.isBatch} band=${cell.contextBand} ${cell.status}`;
    groups.set(words, [...(groups.get(words) ?? []), cell]);
  }
  return new Map(
    [...groups].map(([words, members]) => {
      const tokens = Object.keys(members[0]?.tokens ?? {}).map((name) => {
        const sum = members.reduce(
          (total, cell) => total + cell.tokens[name as keyof ObservedCell['tokens']],
          0n,
        );
        return sum === 0n ? '' : ` ${name}=${sum}`;
      });
      return [words, `calls=${members.reduce((sum, cell) => sum + cell.calls, 0)}${tokens.join('')}`];
    }),
  );
}
