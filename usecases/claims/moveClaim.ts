import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { presentClaim } from '../../api/claims/claims/wire.js';
import type { ApiDeps } from '../../api/deps.js';
import type { EndpointRequest, EndpointResponse } from '../../api/endpoint.js';
import type { OrgDb } from '../../db/orgDb.js';
import { IDEMPOTENCY_HOURS, parseIdempotencyKey } from '../../domain/access/idempotencyKey.js';
import type { ClaimCommand } from '../../domain/claims/lifecycle.js';
import { assertMovable } from '../../domain/claims/lifecycle.js';
import { DomainError } from '../../domain/errors.js';
import { Lanes } from '../../platform/lanes.js';
import { type ClaimOnItsWay, viewClaim, waitForMove } from './viewClaim.js';
import { claimNotFound, getClaimAfter, uuidOfClaim } from './wholeClaim.js';

/** After this time by the database's clock the row refuses a move; the engine is waited for a second longer. */
const MOVE_MICROS = 4_000_000n;
/** Longest wait for other moves of the same claim that came before. */
const LANE_MS = 5_000;
const RETRY_AFTER_SECONDS = 5;
const HOUR_MICROS = 3_600_000_000n;

const lanes = new Lanes();

type MoveRequest = Pick<
  EndpointRequest<unknown, { id: string }, unknown>,
  'params' | 'caller' | 'requestId' | 'orgDb' | 'header'
>;
type Asked = Pick<ClaimCommand, 'to' | 'fields'>;

/**
 * Moves a claim, and answers with it as the move has left it. What Postgres alone can tell is told without the engine: that
 * there is no such claim, that the move was made already by a request with the same Idempotency-Key, that it is illegal.
 * Errors not_found, illegal_transition, claim_conflict, invalid_body, and workflow_engine_unavailable: then the claim is as
 * it was and stays so (docs/claims.md).
 */
export async function moveClaim(
  operationId: string,
  request: MoveRequest,
  asked: Asked,
  deps: Pick<ApiDeps, 'moveClaim' | 'logger'>,
): Promise<EndpointResponse> {
  const { orgDb, caller, requestId } = request;
  const claimId = uuidOfClaim(request.params.id);
  const known = commandIdOf(operationId, request, claimId, asked);
  const seen = await view(orgDb, claimId, known);
  if (seen.recorded && isKept(seen)) return answer(orgDb, claimId, known);
  const { version } = seen.claim;
  assertMovable(seen.claim, { ...asked, version });
  // A key that was used more than a day ago is a new one.
  const commandId = seen.recorded ? randomUUID() : known;
  const passed = await lanes.pass(`${orgDb.orgId} ${claimId}`, LANE_MS, async (hasWaited) => {
    const now = hasWaited ? await view(orgDb, claimId, commandId) : seen;
    // Whoever was before may have made another claim of it than this request was made for.
    assertMovable(now.claim, { ...asked, version });
    const notAfterMicros = Number(now.atMicros + MOVE_MICROS);
    const who = { keyId: caller.keyId, requestId };
    return carryOut(orgDb, { ...asked, ...who, claimId, commandId, version, notAfterMicros }, deps);
  });
  if (!passed) throw notMoved();
  return answer(orgDb, claimId, commandId);
}

/** Resolves once the move is recorded. */
async function carryOut(
  orgDb: OrgDb,
  command: ClaimCommand,
  { moveClaim: ask, logger }: Pick<ApiDeps, 'moveClaim' | 'logger'>,
): Promise<void> {
  const said = await ask({ orgId: orgDb.orgId, claimId: command.claimId }, command);
  if (said.kind === 'moved') return;
  if (said.kind === 'unsent') throw notMoved();
  if (said.kind === 'refused')
    throw said.error.code === 'command_too_late' ? notMoved(said.error) : said.error;
  logger.warn({ err: said.cause, claimId: command.claimId }, 'the engine does not say what became of a move');
  if (await waitForMove(orgDb, command, (ms) => sleep(ms))) return;
  // It was not made; and where somebody else has moved the claim, the row says why not.
  assertMovable((await view(orgDb, command.claimId, command.commandId)).claim, command);
  throw notMoved(said.cause);
}

async function view(orgDb: OrgDb, claimId: string, commandId: string): Promise<ClaimOnItsWay> {
  const seen = await viewClaim(orgDb, claimId, commandId);
  if (!seen) throw claimNotFound();
  return seen;
}

/** Whether what was recorded is the answer to a repeat, as long as answers are kept for repeats. */
function isKept({ recorded, atMicros }: ClaimOnItsWay): boolean {
  return recorded !== undefined && recorded.atMicros > atMicros - BigInt(IDEMPOTENCY_HOURS) * HOUR_MICROS;
}

/** The same for a repeat of a request, with the same Idempotency-Key and the same words; else one of its own. */
function commandIdOf(
  operationId: string,
  { header, caller }: MoveRequest,
  claimId: string,
  asked: Asked,
): string {
  const key = header('idempotency-key');
  if (key === undefined) return randomUUID();
  const words = [caller.keyId, operationId, parseIdempotencyKey(key), claimId, asked];
  return createHash('sha256').update(JSON.stringify(words)).digest('hex');
}

async function answer(orgDb: OrgDb, claimId: string, commandId: string): Promise<EndpointResponse> {
  return { status: 200, body: presentClaim(orgDb.orgId, await getClaimAfter(orgDb, claimId, commandId)) };
}

function notMoved(cause?: unknown): DomainError {
  return new DomainError(
    'workflow_engine_unavailable',
    'The workflow engine does not answer. The claim is as it was; ask again, with the same Idempotency-Key where there was one.',
    { retryAfterSeconds: RETRY_AFTER_SECONDS, cause },
  );
}
