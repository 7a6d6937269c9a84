import { hasSignedIn, type LinkTerms } from '../../db/access/sessions.js';
import type { Database } from '../../db/client.js';
import { listOrganizations } from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import type { Config } from '../../platform/config.js';
import { readRunningState } from '../../platform/runtimeFile.js';
import { createSignInLink, signInAddress } from '../../usecases/access/sessions.js';

/** Makes a one-time link and returns its address; `command` is its author in the audit log. */
export async function makeSignInLink(
  orgDb: OrgDb,
  baseUrl: string,
  terms: LinkTerms,
  command: string,
): Promise<string> {
  const author = {
    actor: { kind: 'command' as const, id: command },
    requestId: null,
    nowMicros: BigInt(Date.now()) * 1_000n,
  };
  return signInAddress(baseUrl, await createSignInLink(orgDb, terms, author));
}

/** The address of a link for the organization of the first start; undefined: somebody has signed in to it. */
export async function findFirstSignInLink(database: Database, baseUrl: string): Promise<string | undefined> {
  const first = (await listOrganizations(database)).find(({ isDemo }) => !isDemo);
  if (!first) return undefined;
  const orgDb = new OrgDb(database, first.id);
  if (await hasSignedIn(orgDb)) return undefined;
  return makeSignInLink(orgDb, baseUrl, { role: 'admin', scopes: null, workspaceId: null }, 'start');
}

/** The address of the service for a browser: BASE_URL, else that of the running start, else that of the settings. */
export function shownBaseUrl(config: Config): string {
  const running = readRunningState(config.dataDir)?.parts.api.address;
  return config.baseUrl ?? running ?? `http://localhost:${config.port}`;
}
