/**
 * Tokens and costs in the metrics that coding agents and instrumentations send over OTLP. Metrics are sums of calls,
 * so they never become events: they show whether calls are missing. Other metrics are ignored. Pure.
 *
 * Sources of the names: Claude Code, "Monitoring"; Gemini CLI, docs/cli/telemetry.md; Codex CLI 0.171.0, as it sends
 * them; OpenTelemetry, "Semantic conventions for generative AI metrics".
 */
import { hash } from 'node:crypto';
import { compare } from '../compare.js';
import { MICROS_PER_HOUR } from '../period.js';
import { type MappedBatch, TOKENS_MAX } from './event.js';
import { checkTime, ItemFault, type MapContext, readCost, shown } from './itemFault.js';
import { type AttributeValue, labelOf, readAnyValue, stripText } from './jsonValues.js';
import { type GroupNames, groupsOf, isObject, type OtlpGroup } from './otlpGroups.js';

/** The lists of a request that hold metrics. */
export const METRIC_GROUPS: GroupNames = {
  resources: 'resourceMetrics',
  scopes: 'scopeMetrics',
  items: 'metrics',
};

/** All input, all output, and dollars. Cached tokens are input, reasoning is output. */
export const METERED_MEASURES = ['input', 'output', 'cost'] as const;
export type MeteredMeasure = (typeof METERED_MEASURES)[number];

/** The value of one data point. */
export interface MeteredPoint {
  /** A uuid, equal for points that report one sum: a repeated point, and later values of a cumulative one. */
  seriesId: string;
  /** Whether later points of the series report larger values; false: the point is its whole series. */
  isCumulative: boolean;
  /** Tokens, or pico-dollars. */
  amount: bigint;
  serviceName: string;
  metric: string;
  measure: MeteredMeasure;
  /** The hour of the point's time, microseconds. */
  hourMicros: bigint;
}

/** The attribute in which a metric names the kind of its tokens, and the kinds that are parts of no other. */
type Reading = { kindBy: string; kinds: Readonly<Record<string, MeteredMeasure>> } | 'cost';

const READINGS: Readonly<Record<string, Reading>> = {
  'claude_code.token.usage': {
    kindBy: 'type',
    kinds: { input: 'input', cacheRead: 'input', cacheCreation: 'input', output: 'output' },
  },
  'claude_code.cost.usage': 'cost',
  // `cache` is part of `input`.
  'gemini_cli.token.usage': {
    kindBy: 'type',
    kinds: { input: 'input', tool: 'input', output: 'output', thought: 'output' },
  },
  // The others are parts of these two, or their total.
  'codex.turn.token_usage': { kindBy: 'token_type', kinds: { input: 'input', output: 'output' } },
  'gen_ai.client.token.usage': {
    kindBy: 'gen_ai.token.type',
    kinds: { input: 'input', output: 'output', completion: 'output' },
  },
};

/** Number of data points in a request. */
export function countPoints(request: unknown): number {
  let count = 0;
  for (const resource of listIn(request, METRIC_GROUPS.resources))
    for (const scope of listIn(resource, METRIC_GROUPS.scopes))
      for (const metric of listIn(scope, METRIC_GROUPS.items)) count += pointsOf(metric).points.length;
  return count;
}

function listIn(holder: unknown, field: string): readonly unknown[] {
  const list = isObject(holder) ? holder[field] : undefined;
  return Array.isArray(list) ? list : [];
}

/** The points of a metric of any kind, and whether their values grow from one to the next. */
function pointsOf(metric: unknown): { points: readonly unknown[]; isCumulative: boolean } {
  if (!isObject(metric)) return { points: [], isCumulative: false };
  const holder = metric.sum ?? metric.histogram ?? metric.exponentialHistogram ?? metric.gauge;
  const temporality = isObject(holder) ? holder.aggregationTemporality : undefined;
  return {
    points: listIn(holder, 'dataPoints'),
    isCumulative: temporality === 2 || temporality === 'AGGREGATION_TEMPORALITY_CUMULATIVE',
  };
}

/** Maps data points in order; a wrong one is rejected with its index and does not affect the others. */
export function mapMetricsRequest(request: unknown, context: MapContext): MappedBatch {
  const batch: MappedBatch & { points: MeteredPoint[] } = {
    calls: [],
    rejections: [],
    ignored: 0,
    links: [],
    points: [],
  };
  let index = 0;
  for (const group of groupsOf(request, METRIC_GROUPS))
    for (const metric of group.items) {
      const name = isObject(metric) && typeof metric.name === 'string' ? stripText(metric.name) : '';
      const reading = Object.hasOwn(READINGS, name) ? READINGS[name] : undefined;
      const { points, isCumulative } = pointsOf(metric);
      for (const point of points) {
        if (reading === undefined) batch.ignored += 1;
        else mapPoint({ point, name, reading, isCumulative, group, index }, context, batch);
        index += 1;
      }
    }
  return batch;
}

interface FoundPoint {
  point: unknown;
  name: string;
  reading: Reading;
  isCumulative: boolean;
  group: OtlpGroup;
  index: number;
}

function mapPoint(
  { point, name, reading, isCumulative, group, index }: FoundPoint,
  context: MapContext,
  batch: MappedBatch & { points: MeteredPoint[] },
): void {
  const { serviceName, scopeName } = group.source;
  try {
    if (!isObject(point)) throw new ItemFault('invalid_field', 'the data point is not an object');
    const attributes = attributesOf(point.attributes);
    const measure = measureOf(reading, attributes);
    if (measure === undefined) {
      batch.ignored += 1;
      return;
    }
    const atNanos = nanosOf(point.timeUnixNano, 'timeUnixNano');
    checkTime(atNanos / 1_000n, context);
    const value = point.asInt ?? point.asDouble ?? point.sum;
    const start = String(point.startTimeUnixNano ?? '');
    const identity = [
      sortedPairs(attributesOf((group.entry.resource as { attributes?: unknown } | undefined)?.attributes)),
      scopeName,
      name,
      sortedPairs(attributes),
      start,
      isCumulative ? '' : String(atNanos),
    ];
    batch.points.push({
      seriesId: hash('sha256', JSON.stringify(identity), 'hex').slice(0, 32),
      isCumulative,
      amount: measure === 'cost' ? readCost(value, name) : tokensOf(value, name),
      serviceName,
      metric: name,
      measure,
      hourMicros: atNanos / 1_000n - ((atNanos / 1_000n) % MICROS_PER_HOUR),
    });
  } catch (fault) {
    if (!(fault instanceof ItemFault)) throw fault;
    const { reason, message } = fault;
    batch.rejections.push({ index, label: `metric "${name}"`, reason, message, serviceName, scopeName });
  }
}

type Attributes = ReadonlyMap<string, AttributeValue>;

function attributesOf(pairs: unknown): Attributes {
  const found = new Map<string, AttributeValue>();
  if (!Array.isArray(pairs)) return found;
  for (const pair of pairs as ({ key?: unknown; value?: unknown } | null)[])
    if (typeof pair?.key === 'string') found.set(stripText(pair.key), readAnyValue(pair.value));
  return found;
}

function sortedPairs(attributes: Attributes): [string, string][] {
  return [...attributes]
    .map(([key, value]): [string, string] => [key, labelOf(value) ?? ''])
    .sort(([one], [other]) => compare(one, other));
}

/** Undefined: the tokens are parts of others. */
function measureOf(reading: Reading, attributes: Attributes): MeteredMeasure | undefined {
  if (reading === 'cost') return 'cost';
  const kind = labelOf(attributes.get(reading.kindBy));
  if (kind === undefined) throw new ItemFault('missing_field', `${reading.kindBy} is missing`);
  return Object.hasOwn(reading.kinds, kind) ? reading.kinds[kind] : undefined;
}

function nanosOf(value: unknown, field: string): bigint {
  const isNumber = typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value));
  if (!isNumber && !(typeof value === 'string' && /^\d{1,20}$/.test(value)))
    throw new ItemFault('missing_field', `${field} is missing`);
  return BigInt(value as string | number | bigint);
}

/** Counters may be doubles; histograms always are. */
function tokensOf(value: unknown, field: string): bigint {
  const number = typeof value === 'string' || typeof value === 'bigint' ? Number(value) : value;
  if (typeof number !== 'number' || !(number >= 0) || number > TOKENS_MAX)
    throw new ItemFault(
      'invalid_number',
      `${field}: ${shown(value)} is not a number from 0 to ${TOKENS_MAX}`,
    );
  return BigInt(Math.round(number));
}
