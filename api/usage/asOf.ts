import { z } from 'zod';
import type { UsageView } from '../../domain/billing/periods.js';
import { usdNumberFromPico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { UsageBooks } from '../../usecases/usage/usage.js';
import { instantParameter } from '../query.js';

/** Totals as of a time: the parameter and the fields of the answer. */
export const asOfParameter = instantParameter.optional().meta({
  type: 'string',
  description:
    'Absent: closed months as they were closed, later changes dated on the day on which they came. A date: every call in its own month, as known at that day’s end, for months closed by then. Now or later: as known now.',
});

export const asOfFields = {
  as_of: z.string().nullable().meta({
    description:
      'Everything known before this time, each call in its own month; null: by the books of closed months',
  }),
  adjustments: z
    .strictObject({
      cost_usd: z.number(),
      call_count: z.int(),
      periods: z
        .array(z.strictObject({ period: z.string(), cost_usd: z.number(), call_count: z.int() }))
        .meta({ description: 'By the closed month that was changed' }),
    })
    .nullable()
    .meta({
      description:
        'Changes of closed months that are in these totals; null where the window touches none and has none',
    }),
};

/** The fields that describe an answer's as-of time. */
export function presentAsOf(
  { view, adjustments }: Pick<UsageBooks, 'adjustments'> & { view: UsageView },
  nowMicros: bigint,
): z.output<z.ZodObject<typeof asOfFields>> {
  const sum = (of: (group: NonNullable<UsageBooks['adjustments']>[number]) => bigint) =>
    (adjustments ?? []).reduce((total, group) => total + of(group), 0n);
  return {
    as_of:
      view.kind === 'books'
        ? null
        : view.kind === 'now'
          ? isoFromMicros(nowMicros)
          : `${view.beforeDay}T00:00:00Z`,
    adjustments: adjustments && {
      cost_usd: usdNumberFromPico(sum((group) => group.costPico)),
      call_count: Number(sum((group) => BigInt(group.calls))),
      periods: [...adjustments]
        .sort((a, b) => (a.key < b.key ? -1 : 1))
        .map((group) => ({
          period: group.key,
          cost_usd: usdNumberFromPico(group.costPico),
          call_count: group.calls,
        })),
    },
  };
}
