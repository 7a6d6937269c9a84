import { amountOf, assertSame, decimalOf, textOf } from './checkCells.js';
import { canonicalText, csvRecords, Difference, decimalText, type JsonNode, ONE, readJson } from './exact.js';
import type { Checked } from './verifyPack.js';

const CLAIM = 'claim.json';
const PARTS = ['billed_usd_exact', 'expected_usd_exact', 'difference_usd_exact'] as const;

/** Verifies that the lines of a claim sum to the totals by day, by dispute, overall, and to the claimed cents. */
export function checkSums(claim: JsonNode): Checked[] {
  const list = (name: string) => claim.fields.get(name)?.items ?? [];
  const cells = new Map<string, JsonNode[]>();
  for (const cell of list('cells')) {
    const key = `${textOf(cell, 'dispute_id')} ${textOf(cell, 'day')}`;
    cells.set(key, [...(cells.get(key) ?? []), cell]);
  }
  let days = 0;
  for (const dispute of list('disputes')) {
    const own = dispute.fields.get('days')?.items ?? [];
    for (const day of own) {
      const key = `${textOf(dispute, 'dispute_id')} ${textOf(day, 'day')}`;
      const ofDay = cells.get(key) ?? [];
      cells.delete(key);
      for (const name of PARTS) assertSame(day, name, sumOf(ofDay, name), 'its lines come to');
      const parts =
        amountOf(day, 'rate_usd_exact') + amountOf(day, 'volume_usd_exact') + amountOf(day, 'own_usd_exact');
      assertSame(day, 'difference_usd_exact', parts, 'its parts come to');
      if (amountOf(day, 'own_usd_exact') === 0n && ofDay.some((cell) => textOf(cell, 'basis') === 'rates'))
        assertSame(day, 'rate_usd_exact', sumOf(ofDay, 'rate_usd_exact'), 'its lines come to');
    }
    for (const name of PARTS) assertSame(dispute, name, sumOf(own, name), 'its days come to');
    assertCents(dispute, 'amount_cents', amountOf(dispute, 'difference_usd_exact'));
    days += own.length;
  }
  const [orphan] = [...cells.values()].flat();
  if (orphan) throw new Difference(CLAIM, orphan.line, 'the line is of no day of a dispute');
  checkTotals(claim, list);
  return [
    { what: 'days and disputes that are the sum of their lines', count: days, note: '' },
    { what: 'totals, netted undercharges, cents', count: list('undercharges').length + 1, note: '' },
  ];
}

function checkTotals(claim: JsonNode, list: (name: string) => readonly JsonNode[]): void {
  const totals = claim.fields.get('totals');
  const head = claim.fields.get('claim');
  if (!totals || !head) throw new Difference(CLAIM, claim.line, 'has no totals');
  const disputes = list('disputes');
  assertSame(totals, 'billed_usd_exact', sumOf(disputes, 'billed_usd_exact'), 'the disputes come to');
  assertSame(totals, 'expected_usd_exact', sumOf(disputes, 'expected_usd_exact'), 'the disputes come to');
  const disputed = sumOf(disputes, 'difference_usd_exact');
  assertSame(totals, 'disputed_usd_exact', disputed, 'the disputes come to');
  for (const one of list('undercharges')) {
    const difference = amountOf(one, 'billed_usd_exact') - amountOf(one, 'expected_usd_exact');
    assertSame(one, 'difference_usd_exact', difference, 'billed less expected is');
  }
  const netted = -sumOf(list('undercharges'), 'difference_usd_exact');
  assertSame(totals, 'netted_usd_exact', netted, 'the undercharges come to');
  assertSame(totals, 'recoverable_usd_exact', disputed - netted, 'disputed less netted is');
  assertCents(totals, 'recoverable_cents', disputed - netted);
  assertCents(head, 'total_recoverable_cents', disputed - netted);
  const days = disputes.flatMap((dispute) => dispute.fields.get('days')?.items ?? []);
  const parts = claim.fields.get('decomposition');
  if (!parts) throw new Difference(CLAIM, claim.line, 'has no decomposition');
  for (const name of ['rate', 'volume', 'own'])
    assertSame(parts, `${name}_exact`, sumOf(days, `${name}_usd_exact`), 'the days come to');
  checkRemedy(claim, disputed - netted);
}

/** Verifies that the sentence with the requested credit names its dollars. */
function checkRemedy(claim: JsonNode, recoverable: bigint): void {
  const remedy = claim.fields.get('requested_remedy');
  const head = claim.fields.get('claim');
  const cents = centsDown(recoverable).toString().padStart(3, '0');
  const whole = cents.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ',');
  const period = `${head?.fields.get('period_start')?.text} to ${head?.fields.get('period_end')?.text}`;
  if (remedy?.text !== `Issue a credit of $${whole}.${cents.slice(-2)} for ${period}.`)
    throw new Difference(CLAIM, remedy?.line, 'requested_remedy names another amount or period');
}

const sumOf = (nodes: readonly JsonNode[], name: string): bigint =>
  nodes.reduce((sum, node) => sum + amountOf(node, name), 0n);

const centsDown = (dollars: bigint): bigint => (dollars * 100n) / ONE;

function assertCents(node: JsonNode, name: string, dollars: bigint): void {
  const field = node.fields.get(name);
  const cents = centsDown(dollars);
  if (field?.text !== String(cents))
    throw new Difference(
      CLAIM,
      field?.line,
      `${name} is ${field?.text}, and ${decimalText(dollars)} dollars are ${cents} whole cents`,
    );
}

const FILE = 'claim.csv';
const FIELDS: readonly [column: string, field: string][] = [
  ['dispute_id', 'dispute_id'],
  ['day', 'day'],
  ['model', 'model'],
  ['token_class', 'token_class'],
  ['service_tier', 'service_tier'],
  ['is_batch', 'is_batch'],
  ['long_context', 'long_context'],
  ['region', 'region'],
  ['billed_quantity', 'billed_quantity'],
  ['right_quantity', 'right_quantity'],
  ['observed_quantity', 'observed_quantity'],
  ['billed_usd_per_mtok', 'billed_rate_usd'],
  ['billed_usd', 'billed_usd_exact'],
  ['expected_usd_per_mtok', 'expected_rate_usd'],
  ['expected_usd', 'expected_usd_exact'],
  ['difference_usd', 'difference_usd_exact'],
  ['basis', 'basis'],
];

/** Verifies that claim.csv equals claim.json line by line, and that its sums are right. */
export function checkCsv(files: ReadonlyMap<string, Buffer>, claim: JsonNode): Checked[] {
  const bytes = files.get(FILE);
  if (!bytes) throw new Difference(FILE, undefined, 'is missing');
  const lines = [...csvRecords(FILE, bytes.toString('utf8'))];
  const list = (name: string) => claim.fields.get(name)?.items ?? [];
  const totals = claim.fields.get('totals') ?? claim;
  const lineOf = (tokenClass: string, difference: string) =>
    FIELDS.map(([column]) => ({ token_class: tokenClass, difference_usd: difference })[column] ?? '');
  const expected = [
    FIELDS.map(([column]) => column),
    ...list('cells').map((cell) => FIELDS.map(([, field]) => cellOf(cell, field))),
    ...list('undercharges').map((one) =>
      FIELDS.map(
        ([column, field]) =>
          ({ token_class: 'netted undercharge', basis: 'stated', dispute_id: '' })[column] ??
          cellOf(one, field),
      ),
    ),
    lineOf('total', textOf(totals, 'recoverable_usd_exact')),
  ];
  // Packs of earlier versions end with the total.
  if (lines.length > expected.length)
    expected.push(lineOf('credit requested', dollarsOf(textOf(totals, 'recoverable_cents'))));
  expected.forEach((cells, at) => {
    const found = lines[at];
    const other = cells.findIndex((cell, place) => found?.cells[place] !== safe(cell));
    if (!found || other >= 0 || found.cells.length !== cells.length)
      throw new Difference(
        FILE,
        found?.line,
        `${FIELDS[Math.max(other, 0)]?.[0]} is ${found?.cells[other]}, and claim.json has ${cells[other]}`,
      );
  });
  const [extra] = lines.slice(expected.length);
  if (extra) throw new Difference(FILE, extra.line, 'is a line that claim.json does not have');
  return [{ what: 'lines of claim.csv', count: expected.length - 1, note: '' }];
}

/** Cents as a decimal of dollars with two digits. */
const dollarsOf = (cents: string): string => cents.padStart(3, '0').replace(/(..)$/, '.$1');

function cellOf(node: JsonNode, field: string): string {
  const value = node.fields.get(field);
  return value === undefined || (value.text === 'null' && value.kind === 'word') ? '' : value.text;
}

/** A cell escaped so that spreadsheets do not treat it as a formula. */
const safe = (cell: string): string =>
  /^[=+\-@\t\r]/.test(cell) && !/^-?\d+(\.\d+)?$/.test(cell) ? `'${cell}` : cell;

/** Verifies that the calls of the pack sum to the claimed usage. */
export function checkEvents(files: ReadonlyMap<string, Buffer>, claim: JsonNode): Checked[] {
  const events = claim.fields.get('events');
  const file = events?.fields.get('file');
  if (!events || file?.kind !== 'string') return [{ what: 'calls', count: 0, note: 'none are in the pack' }];
  const bytes = files.get(file.text);
  if (!bytes) throw new Difference(file.text, undefined, 'is missing');
  const calls = readJson(file.text, bytes.toString('utf8'));
  for (const name of ['included', 'total'])
    if (textOf(events, name) !== String(calls.length))
      throw new Difference(
        CLAIM,
        events.fields.get(name)?.line,
        `${name} is ${textOf(events, name)}, and the pack holds ${calls.length} calls`,
      );
  const sums = sumsOf(file.text, calls);
  const observed = claim.fields.get('observed')?.items ?? [];
  for (const one of observed) {
    const key = keyOf(one);
    const sum = sums.get(key);
    sums.delete(key);
    for (const name of STATUSES)
      if (textOf(one, name) !== String(sum?.[name] ?? 0n))
        throw new Difference(
          CLAIM,
          one.fields.get(name)?.line,
          `${name} is ${textOf(one, name)}, and the calls come to ${sum?.[name] ?? 0n}`,
        );
  }
  const [left] = sums.values();
  if (left)
    throw new Difference(file.text, left.line, 'is a call of a day and class that claim.json does not list');
  checkSamples(claim, calls);
  checkCells(claim, observed);
  return [
    { what: 'calls, added up by day, model and class', count: calls.length, note: '' },
    { what: 'sums of calls', count: observed.length, note: '' },
  ];
}

const STATUSES = ['ok', 'cancelled', 'failed'] as const;
type Sums = Record<(typeof STATUSES)[number], bigint> & { line: number };

const keyOf = (one: JsonNode) =>
  `${textOf(one, 'day')}\n${textOf(one, 'model')}\n${textOf(one, 'token_class')}`;

function sumsOf(file: string, calls: readonly JsonNode[]): Map<string, Sums> {
  const sums = new Map<string, Sums>();
  for (const call of calls) {
    const status = textOf(call, 'status');
    const kind = status === 'error' ? 'failed' : status === 'cancelled' ? 'cancelled' : 'ok';
    for (const [tokenClass, count] of call.fields.get('tokens')?.fields ?? []) {
      if (!/^\d+$/.test(count.text)) throw new Difference(file, count.line, `${tokenClass} is not a count`);
      const tokens = BigInt(count.text);
      if (tokens === 0n) continue;
      const key = `${textOf(call, 'day')}\n${textOf(call, 'model')}\n${tokenClass}`;
      const sum = sums.get(key) ?? { ok: 0n, cancelled: 0n, failed: 0n, line: call.line };
      sum[kind] += tokens;
      sums.set(key, sum);
    }
  }
  return sums;
}

/** Verifies that each sampled call is a line of the file, verbatim. */
function checkSamples(claim: JsonNode, calls: readonly JsonNode[]): void {
  const names = [
    'request_id',
    'day',
    'timestamp',
    'end_at',
    'model',
    'response_model',
    'service_tier',
    'status',
    'http_status',
    'usage',
  ];
  const textOfCall = (call: JsonNode) =>
    names.map((name) => canonicalText(call.fields.get(name) ?? call)).join('\n');
  const known = new Set(calls.map(textOfCall));
  for (const sample of claim.fields.get('samples')?.items ?? [])
    if (!known.has(textOfCall(sample))) throw new Difference(CLAIM, sample.line, 'is no call of the pack');
}

/** Verifies that the lines of a day and class show no more usage than its calls. */
function checkCells(claim: JsonNode, observed: readonly JsonNode[]): void {
  const used = new Map(
    observed.map((one) => [keyOf(one), BigInt(textOf(one, 'ok')) + BigInt(textOf(one, 'cancelled'))]),
  );
  const shown = new Map<string, bigint>();
  for (const cell of claim.fields.get('cells')?.items ?? []) {
    const count = decimalOf(cell, 'observed_quantity');
    if (count === undefined) continue;
    const place = `${textOf(cell, 'dispute_id')}\n${keyOf(cell)}`;
    const sum = (shown.get(place) ?? 0n) + count;
    shown.set(place, sum);
    if (sum > (used.get(keyOf(cell)) ?? 0n) * ONE)
      throw new Difference(
        CLAIM,
        cell.fields.get('observed_quantity')?.line,
        'observed_quantity is more than the calls come to',
      );
  }
}
