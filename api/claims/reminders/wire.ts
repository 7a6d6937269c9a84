import { z } from 'zod';
import { parseInstant } from '../../../domain/period.js';
import { CLAIMS_PATH } from '../claims/wire.js';

export const SNOOZE_PATH = `${CLAIMS_PATH}/{id}/snooze`;
const UNTIL_RULE = 'must be a day or a time of ISO 8601, for example 2026-12-14, or null';
const UNTIL_CHARS_MAX = 40;

export const snoozeBody = z
  .strictObject({
    until: z
      .string({ error: UNTIL_RULE })
      .max(UNTIL_CHARS_MAX, { error: UNTIL_RULE })
      .refine((text) => parseInstant(text) !== undefined, { error: UNTIL_RULE })
      .nullable()
      .meta({
        description:
          'A time, or a day, which begins in the time zone of the organization; ahead, by a year at most. Null: no longer',
        example: '2026-12-14',
      }),
  })
  .meta({ id: 'ClaimSnooze' });
