/** That the calls of the pack come to what the claim says was used. */
import { decimalOf, textOf } from './checkCells.js';
import { Difference } from './difference.js';
import { canonicalText, type JsonNode, readJson } from './exactJson.js';
import { ONE } from './exactNumbers.js';
import type { Checked } from './verifyPack.js';

const CLAIM = 'claim.json';

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

/** Each sampled call is a line of the file, word for word. */
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

/** The lines of a day and class show no more use than its calls. */
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
