import { publicId } from '../../../domain/ids.js';
import { parseInstant } from '../../../domain/period.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { snoozeClaim } from '../../../usecases/claims/snoozeClaim.js';
import { getWholeClaim, uuidOfClaim } from '../../../usecases/claims/wholeClaim.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { isoOrNull } from '../../runs/runWire.js';
import { claimParams, claimSchema, presentClaim } from '../claims/wire.js';
import { SNOOZE_PATH, snoozeBody } from './wire.js';

/** Nothing is moved by it, so it asks for no more than putting drafts in order. */
const snoozeClaimEndpoint = defineEndpoint({
  operationId: 'snoozeClaim',
  method: 'post',
  path: SNOOZE_PATH,
  tag: 'Claims',
  summary: 'Have nobody be reminded of a claim for a while',
  description:
    'Until then no notice of it is given, and then one, for all that was due by then. A move ends it. Null takes it back.',
  access: { scope: 'claims:write', workspace: 'refused' },
  params: claimParams,
  body: snoozeBody,
  responses: { 200: { description: 'The claim as it is now', schema: claimSchema } },
  problems: ['not_found', 'claim_over'],
  async handle(request, deps) {
    const { params, body, orgDb, afterCommit } = request;
    const id = uuidOfClaim(params.id);
    const until = body.until === null ? null : (parseInstant(body.until) ?? null);
    const { beforeMicros, untilMicros } = await orgDb.transaction(async (inside) => {
      const snoozed = await snoozeClaim(inside, id, until);
      if (snoozed.beforeMicros !== snoozed.untilMicros)
        await recordAction(
          inside,
          request,
          'claim.snoozed',
          { type: 'claim', id: publicId('clm', id) },
          { old_until: isoOrNull(snoozed.beforeMicros), new_until: isoOrNull(snoozed.untilMicros) },
        );
      return snoozed;
    });
    if (beforeMicros !== untilMicros) afterCommit(() => deps.kickDispatcher());
    return { status: 200, body: presentClaim(orgDb.orgId, await getWholeClaim(orgDb, id)) };
  },
});

export const claimReminderEndpoints: readonly Endpoint[] = [snoozeClaimEndpoint];
