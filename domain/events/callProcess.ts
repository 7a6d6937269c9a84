import { hash } from 'node:crypto';
import type { CallProcess, CallRecord } from './event.js';
import { readAnyValue, stripText } from './jsonValues.js';
import { isObject } from './otlpGroups.js';

/**
 * The process that an OTLP resource describes. Two resources are of one process only if all their attributes are equal
 * and identify a process: OpenTelemetry's `service.instance.id`, else a host and a process id on it.
 */

const INSTANCE = 'service.instance.id';
const PROCESS = 'process.pid';
const HOSTS = ['host.id', 'host.name', 'container.id', 'k8s.pod.uid'];

/**
 * The process of a resource in a request; null: the resource identifies no process and has spans of one scope only, so
 * no call of it can be paired. Spans of a resource that identifies no process are of one process within its entry of
 * the request, since an exporter describes itself; `firstSpan` distinguishes that entry from all others.
 */
export function processOf(resource: unknown, scopes: number, firstSpan: unknown): CallProcess | null {
  const attributes = attributesOf(resource);
  const isIdentified =
    isPresent(attributes.get(INSTANCE)) ||
    (isPresent(attributes.get(PROCESS)) && HOSTS.some((name) => isPresent(attributes.get(name))));
  if (!isIdentified && scopes < 2) return null;
  const sorted = [...attributes].sort(([one], [other]) => (one < other ? -1 : 1));
  const entry = isIdentified ? [] : [idsOf(firstSpan)];
  const text = JSON.stringify([sorted, ...entry], (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return { hash: numberOf(text), isIdentified };
}

function attributesOf(resource: unknown): Map<string, unknown> {
  const found = new Map<string, unknown>();
  const pairs = isObject(resource) ? resource.attributes : undefined;
  if (!Array.isArray(pairs)) return found;
  for (const pair of pairs as ({ key?: unknown; value?: unknown } | null)[])
    if (typeof pair?.key === 'string') found.set(stripText(pair.key), readAnyValue(pair.value));
  return found;
}

const isPresent = (value: unknown) => value !== undefined && value !== '';

function idsOf(span: unknown): unknown {
  return isObject(span) ? [span.traceId, span.spanId] : null;
}

/** The first 64 bits of the text's sha256. */
function numberOf(text: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${hash('sha256', text, 'hex').slice(0, 16)}`));
}

const INPUT_FACTOR = 0x9e3779b97f4a7c15n;
const OUTPUT_FACTOR = 0xc2b2ae3d27d4eb4fn;

/**
 * A number that is equal for reports of one process with equal counts of input and output, and otherwise almost never;
 * null: the report cannot be one of a pair, since its process, scope or usage is unknown. Of two reports with equal
 * counts the numbers are equal only if their processes' hashes are.
 */
export function pairKeyOf({ process, scopeName, usage, status }: PairedCall): bigint | null {
  if (process === null || scopeName === '' || usage === null || status === 'blocked') return null;
  const input = usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation;
  const output = usage.output + usage.outputAudio;
  if (input + output === 0) return null;
  const counts = BigInt(input) * INPUT_FACTOR + BigInt(output) * OUTPUT_FACTOR;
  return BigInt.asIntN(64, process.hash ^ counts);
}

type PairedCall = Pick<CallRecord, 'process' | 'scopeName' | 'usage' | 'status'>;

/** The pair key of a report whose process other requests can name too; null: there is none. */
export function lastingPairKeyOf(call: PairedCall): bigint | null {
  return call.process?.isIdentified === true ? pairKeyOf(call) : null;
}
