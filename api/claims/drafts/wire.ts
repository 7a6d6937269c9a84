import { z } from 'zod';
import { CLAIMS_PATH } from '../claims/wire.js';

export const MERGE_PATH = `${CLAIMS_PATH}/{id}/merge`;
const DISPUTES_MAX = 500;
const CLAIMS_MAX = 100;
const NOTES_CHARS_MAX = 4_000;
const ID_CHARS_MAX = 64;

const idText = (of: string) => z.string().max(ID_CHARS_MAX, { error: `is not the id of a ${of}` });

const each = (ids: readonly string[]) => new Set(ids).size === ids.length;

export const createClaimBody = z
  .strictObject({
    dispute_ids: z
      .array(idText('dispute'))
      .min(1, { error: 'must name at least one dispute' })
      .max(DISPUTES_MAX, { error: `must name at most ${DISPUTES_MAX} disputes` })
      .refine(each, { error: 'must name each dispute once' })
      .meta({ description: 'Open ones in no claim, of one account of one provider' }),
    notes: z
      .string()
      .trim()
      .max(NOTES_CHARS_MAX, { error: `must have at most ${NOTES_CHARS_MAX} characters` })
      .nullable()
      .optional(),
  })
  .meta({ id: 'NewClaim' });

export const mergeClaimsBody = z
  .strictObject({
    claim_ids: z
      .array(idText('claim'))
      .min(1, { error: 'must name at least one other draft' })
      .max(CLAIMS_MAX, { error: `must name at most ${CLAIMS_MAX} drafts` })
      .refine(each, { error: 'must name each draft once' })
      .meta({ description: 'Drafts whose disputes this one takes over; they are gone then' }),
  })
  .meta({ id: 'ClaimMerge' });
