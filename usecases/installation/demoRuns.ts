import {
  type DemoRun,
  failLostDemoRuns,
  findDemoRun,
  findNewestDemoRun,
  findOpenDemoRun,
  insertDemoRun,
} from '../../db/installation/demoRuns.js';
import {
  type DemoOrganization,
  findDemoOrganization,
  lockOrganization,
} from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { actorOf, type RequestAuthor, recordAction } from '../access/recordAction.js';
import { createSignInLink, signInAddress } from '../access/sessions.js';
import type { UseCaseDeps } from '../useCaseDeps.js';

/** Loads and removes the demo, each in a separate program. */
export interface DemoControl {
  /** Starts the program that loads the demo and records how far it is. */
  load(run: { orgId: string; id: string }): void;
  /** Removes the demo with all its rows; resolves once it is removed. */
  remove(): Promise<void>;
}

/** Opens a run that loads the demo; an open one is returned instead. */
export async function openDemoRun(
  orgDb: OrgDb,
  nowMicros: bigint,
  author: RequestAuthor,
): Promise<{ run: DemoRun; isNew: boolean }> {
  return orgDb.transaction(async (inside) => {
    await lockOrganization(inside);
    await failLostDemoRuns(inside);
    const open = await findOpenDemoRun(inside);
    if (open) return { run: open, isNew: false };
    const id = newUuid(nowMicros);
    await insertDemoRun(inside, { id, requestedBy: author.caller.keyId });
    await recordAction(inside, author, 'demo.requested', { type: 'run', id: publicId('run', id) });
    return { run: await getDemoRun(inside, id), isNew: true };
  });
}

/** The run that loads the demo; it has failed if its program has died. Error: not_found. */
export async function getDemoRun(orgDb: OrgDb, id: string): Promise<DemoRun> {
  return orgDb.transaction(async (inside) => {
    await failLostDemoRuns(inside);
    const run = await findDemoRun(inside, id);
    if (!run) throw new DomainError('not_found', 'there is no load of the demo with this id');
    return run;
  });
}

/** The demo, if it exists, and the organization's newest run that loaded it. */
export async function getDemoState(
  orgDb: OrgDb,
): Promise<{ demo: DemoOrganization | undefined; run: DemoRun | undefined }> {
  const run = await orgDb.transaction(async (inside) => {
    await failLostDemoRuns(inside);
    return findNewestDemoRun(inside);
  });
  return { demo: await findDemoOrganization(orgDb.database), run };
}

/** The demo and a new one-time link into it; undefined: it was removed. */
export async function makeDemoLink(
  { database }: UseCaseDeps,
  baseUrl: string,
  nowMicros: bigint,
  { caller, requestId }: RequestAuthor,
): Promise<{ demo: DemoOrganization; link: string } | undefined> {
  const demo = await findDemoOrganization(database);
  if (!demo) return undefined;
  const terms = { role: 'admin', scopes: null, workspaceId: null } as const;
  const author = { actor: actorOf(caller), requestId, nowMicros };
  const token = await createSignInLink(new OrgDb(database, demo.id), terms, author);
  return { demo, link: signInAddress(baseUrl, token) };
}

/** Records the removal and removes the demo. Error: not_found. */
export async function removeDemo(
  orgDb: OrgDb,
  control: Pick<DemoControl, 'remove'>,
  author: RequestAuthor,
): Promise<void> {
  const demo = await findDemoOrganization(orgDb.database);
  if (!demo) throw new DomainError('not_found', 'there is no demo: POST /api/v1/demo loads it');
  await control.remove();
  const subject = { type: 'organization', id: publicId('org', demo.id) };
  // A request of the demo itself leaves no log, because its own was removed.
  if (demo.id !== orgDb.orgId)
    await orgDb.transaction((inside) => recordAction(inside, author, 'demo.removed', subject));
}
