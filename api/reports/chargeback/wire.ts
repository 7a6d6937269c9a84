import { z } from 'zod';
import { invalidField } from '../../../domain/errors.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromPico, usdNumberOrNull } from '../../../domain/money.js';
import {
  exclusiveEnd,
  type Instant,
  isoFromMicros,
  lastDays,
  MICROS_PER_DAY,
  microsOfDay,
} from '../../../domain/period.js';
import {
  ALLOCATIONS,
  CHARGEBACK_DIMENSIONS,
  type ChargebackBucket,
  type ChargebackDimension,
} from '../../../domain/usage/chargeback.js';
import type { ChargebackReport } from '../../../usecases/usage/chargeback.js';
import { type CsvColumns, type CsvTable, csvInteger, csvTable, csvUsd } from '../../csv.js';
import { instantParameter, windowOf } from '../../query.js';
import { asOfFields, asOfParameter, presentAsOf } from '../../usage/asOf.js';

const PERIODS = { today: 1, '7d': 7, '30d': 30, '90d': 90 } as const;
const PERIOD_NAMES = Object.keys(PERIODS) as (keyof typeof PERIODS)[];
const CHARGEBACK_DAYS_MAX = 366;

const dateParameter = instantParameter
  .refine((instant: Instant) => instant.dateOnly, { error: 'must be a date such as 2026-01-31' })
  .optional()
  .meta({ type: 'string', format: 'date', description: 'UTC day, included' });

const oneOf = <const T extends readonly [string, ...string[]]>(words: T) =>
  z.enum(words, { error: `must be one of ${words.join(', ')}` });

export const chargebackQuery = z.object({
  dimension: oneOf(CHARGEBACK_DIMENSIONS).default('model'),
  start_date: dateParameter,
  end_date: dateParameter,
  period: oneOf(PERIOD_NAMES as [keyof typeof PERIODS, ...(keyof typeof PERIODS)[]])
    .default('30d')
    .meta({ description: 'UTC days that end with today; start_date and end_date take precedence' }),
  allocation: oneOf(ALLOCATIONS).optional().meta({
    description:
      'How spend that belongs to no bucket is shared out; absent: as the settings of the organization say',
  }),
  as_of: asOfParameter,
});

const bucketSchema = z
  .strictObject({
    bucket: z.string().meta({ description: 'The value of the dimension; <unset> for calls without one' }),
    cost_cents: z.int().meta({
      description:
        'cost_usd + allocated_usd in whole cents, rounded by largest remainder: all buckets sum to total_cost_cents',
    }),
    cost_usd: z.number().meta({ description: 'Of the bucket’s own calls' }),
    tokens: z.int().meta({ description: 'input + output + cache_read + cache_creation' }),
    rows: z.int().meta({ description: 'Calls' }),
    allocated_usd: z.number().optional().meta({
      description:
        'Only with an allocation. The bucket’s part of spend that belongs to no bucket; negative where its own spend was shared out',
    }),
  })
  .meta({ id: 'ChargebackBucket' });

export const chargebackResponse = z.strictObject({
  organization_id: z.string(),
  dimension: z.enum(CHARGEBACK_DIMENSIONS),
  since: z.string(),
  until: z.string(),
  count: z.int().meta({ description: 'Buckets' }),
  total_cost_cents: z.int(),
  total_cost_usd: z.number().meta({ description: 'What all buckets cost, allocated spend included' }),
  buckets: z.array(bucketSchema),
  allocation: z.enum(ALLOCATIONS),
  allocated: z
    .strictObject({
      unset_usd: z.number().meta({ description: 'Of calls without a value of the dimension' }),
      unobserved_usd: z.number().meta({ description: 'Billed usage that no call explains' }),
      fees_usd: z.number().meta({ description: 'Charges that no call can show' }),
      not_compared_usd: z.number().meta({
        description:
          'Billed on days that no run has compared since their bill changed: in no bucket and no total',
      }),
    })
    .nullable()
    .meta({ description: 'What was allocated; null with none' }),
  ...asOfFields,
});

interface Days {
  fromMicros: bigint;
  toMicros: bigint;
}

const NAMES = ['start_date', 'end_date'] as const;

/** Whole days, half-open. Errors invalid_range, invalid_parameter. */
export function chargebackDays(query: z.output<typeof chargebackQuery>, nowMicros: bigint): Days {
  const { start_date: start, end_date: end, period } = query;
  if (start === undefined && end === undefined) {
    const { fromDay, toDay } = lastDays(PERIODS[period], nowMicros);
    return { fromMicros: microsOfDay(fromDay), toMicros: microsOfDay(toDay) };
  }
  if (start === undefined || end === undefined) {
    const [missing, given] = start === undefined ? NAMES : [NAMES[1], NAMES[0]];
    throw invalidField('query', missing, `is required beside ${given}; or give neither, and period`);
  }
  windowOf(start, end, NAMES);
  const days = { fromMicros: start.micros, toMicros: exclusiveEnd(end) };
  if (days.toMicros - days.fromMicros > BigInt(CHARGEBACK_DAYS_MAX) * MICROS_PER_DAY)
    throw invalidField(
      'query',
      'end_date',
      `must end a window of at most ${CHARGEBACK_DAYS_MAX} days`,
      'invalid_range',
    );
  return days;
}

export const questionOf = (query: z.output<typeof chargebackQuery>, days: Days, nowMicros: bigint) => ({
  ...days,
  dimension: query.dimension,
  allocation: query.allocation,
  asOf: query.as_of,
  names: NAMES,
  nowMicros,
});

export function presentChargeback(
  orgId: string,
  dimension: ChargebackDimension,
  { fromMicros, toMicros }: Days,
  report: ChargebackReport,
  nowMicros: bigint,
): z.output<typeof chargebackResponse> {
  const { buckets, allocated } = report;
  return {
    organization_id: publicId('org', orgId),
    dimension,
    since: isoFromMicros(fromMicros),
    until: isoFromMicros(toMicros - 1n),
    count: buckets.length,
    total_cost_cents: Number(report.totalCents),
    total_cost_usd: usdNumberFromPico(report.totalPico),
    buckets: buckets.map((bucket) => ({
      bucket: bucket.key,
      cost_cents: Number(bucket.costCents),
      cost_usd: usdNumberFromPico(bucket.costPico),
      tokens: bucket.tokens,
      rows: bucket.rows,
      ...(allocated ? { allocated_usd: usdNumberFromPico(bucket.allocatedPico) } : {}),
    })),
    allocation: report.allocation,
    allocated: allocated && {
      unset_usd: usdNumberFromPico(allocated.unsetPico),
      unobserved_usd: usdNumberFromPico(allocated.unobservedPico),
      fees_usd: usdNumberFromPico(allocated.feesPico),
      not_compared_usd: usdNumberOrNull(report.notComparedPico) ?? 0,
    },
    ...presentAsOf(report, nowMicros),
  };
}

const ALLOCATED: CsvColumns<ChargebackBucket> = [
  ['allocated_usd', ({ allocatedPico }) => csvUsd(allocatedPico)],
];

export function chargebackTable(
  dimension: ChargebackDimension,
  { fromMicros, toMicros }: Days,
  { buckets, allocated }: ChargebackReport,
): CsvTable {
  const days = [fromMicros, toMicros - 1n].map((micros) => isoFromMicros(micros).slice(0, 10));
  const columns: CsvColumns<ChargebackBucket> = [
    [dimension, ({ key }) => key],
    ['cost_cents', ({ costCents }) => csvInteger(Number(costCents))],
    ['cost_usd', ({ costPico }) => csvUsd(costPico)],
    ['tokens', ({ tokens }) => csvInteger(tokens)],
    ['rows', ({ rows }) => csvInteger(rows)],
    ...(allocated ? ALLOCATED : []),
  ];
  return csvTable(`chargeback-${dimension}-${days.join('-')}`, columns, buckets);
}
