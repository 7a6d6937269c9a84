import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findKey, type NewKey } from '../../db/access/keys.js';
import type { Database } from '../../db/client.js';
import { type DemoOrganization, findDemoOrganization } from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import { parseKey } from '../../domain/access/keyRules.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { DAY_COUNT } from '../../lab/demo/calendar.js';
import { ORGANIZATION_NAME } from '../../lab/demo/company.js';
import { DEMO_SEED, generateDemo } from '../../lab/demo/generateDemo.js';
import type { Config } from '../../platform/config.js';
import { writePrivateFile } from '../../platform/embedded/dataDir.js';
import { readRunningState } from '../../platform/runtimeFile.js';
import { StartError } from '../../platform/startError.js';
import {
  insertDemoKey,
  insertDemoOrganization,
  removeDemoOrganization,
} from '../../usecases/installation/organization.js';
import { describeKey, makeKey } from '../service/prepareDatabase.js';
import { makeSignInLink } from '../service/signInLink.js';
import { withToolDatabase } from '../service/toolDatabase.js';
import type { Screen } from '../terminal/terminal.js';
import { readFindings, renderFindings } from './demoFindings.js';
import { type LoadedDemo, loadDemo, type ServiceClient } from './demoLoad.js';

const READY_WAIT_MS = 180_000;
const READY_POLL_MS = 250;

/** The first screen's facts about a loaded demo. */
interface DemoRecord {
  /** Public id, for commands with --org. */
  organization: string;
  endDay: string;
  events: number;
  flagged: number;
}

/** Loads the demo into the service at `base` and prints its findings. */
export async function showDemo(config: Config, base: string, screen: Screen): Promise<void> {
  const { client, loaded } = await bringDemo(config, base, screen);
  const findings = await screen.step('findings', readFindings(client, loaded));
  const file = relative(process.cwd(), demoKeyFile(config.dataDir));
  const keyFile = file.startsWith('..') ? demoKeyFile(config.dataDir) : file;
  const link = await withToolDatabase(config, (database) => makeDemoLink(database, config.baseUrl ?? base));
  process.stdout.write(renderFindings(findings, { base, keyFile, link }));
}

/** A one-time link into the demo's organization. */
async function makeDemoLink(database: Database, baseUrl: string): Promise<string> {
  const demo = await findDemoOrganization(database);
  if (!demo) throw new StartError('The demo was removed meanwhile: run npm run demo again.');
  const terms = { role: 'admin', scopes: null, workspaceId: null } as const;
  return makeSignInLink(new OrgDb(database, demo.id), baseUrl, terms, 'demo');
}

/** Loads the demo into the service at `base`: its organization, key and data. Existing parts stay. */
export async function bringDemo(
  config: Config,
  base: string,
  screen: Screen,
): Promise<{ client: ServiceClient; loaded: LoadedDemo }> {
  await waitUntilReady(base);
  const { organization, adminKey } = await screen.step(
    'Demo Labs',
    withToolDatabase(config, (database) => openDemo(database, config.dataDir, Date.now())),
  );
  const client = { base, key: adminKey };
  const demo = generateDemo({ seed: DEMO_SEED, endDay: organization.endDay });
  const loaded = await loadDemo(client, demo, screen);
  const record: DemoRecord = {
    organization: publicId('org', organization.id),
    endDay: organization.endDay,
    events: loaded.events,
    flagged: loaded.run.result.flagged,
  };
  writePrivateFile(recordFile(config), `${JSON.stringify(record)}\n`);
  return { client, loaded };
}

/** Workflows read and compare bills, so without Temporal there would be no findings. */
async function waitUntilReady(base: string): Promise<void> {
  const deadline = performance.now() + READY_WAIT_MS;
  for (;;) {
    const ready = await fetch(`${base}/readyz`)
      .then((response) => response.json() as Promise<{ temporal?: string }>)
      .catch(() => undefined);
    if (ready?.temporal === 'up') return;
    if (performance.now() > deadline)
      throw new StartError(
        'The workflow engine does not serve, so no bill can be read: see ./trueup doctor, then run npm run demo again.',
      );
    await sleep(READY_POLL_MS);
  }
}

/** Address of the API of the start that runs on this data directory; undefined: none runs. */
export async function findRunningApi(config: Config): Promise<string | undefined> {
  const deadline = performance.now() + READY_WAIT_MS;
  for (;;) {
    const running = readRunningState(config.dataDir);
    if (!running) return undefined;
    if (running.parts.api.address !== undefined) return running.parts.api.address;
    if (performance.now() > deadline)
      throw new StartError('The running service has no API yet: see ./trueup status, then try again.');
    await sleep(READY_POLL_MS);
  }
}

export function recordFile(config: Config): string {
  return join(config.dataDir, 'demo.json');
}

/** Whether a start has to load the demo: it was requested, and was not completely loaded here before. */
export function isDemoWanted(config: Config): boolean {
  return config.demo && demoLine(config) === undefined;
}

/** The first screen's line about the demo; undefined: none was loaded. */
export function demoLine(config: Config): string | undefined {
  try {
    const { events, flagged, endDay } = JSON.parse(readFileSync(recordFile(config), 'utf8')) as DemoRecord;
    return `${DAY_COUNT} days to ${endDay} · ${events.toLocaleString('en-US')} events · ${flagged} flagged gaps      remove: ./trueup demo reset`;
  } catch {
    return undefined;
  }
}

const DAY_MS = 86_400_000;
const KEY_NAME = 'demo admin key';

interface OpenedDemo {
  organization: DemoOrganization;
  adminKey: string;
}

/** File of the demo's admin key, mode 600. */
function demoKeyFile(dataDir: string): string {
  return join(dataDir, 'demo-key');
}

/**
 * The demo's organization with an admin key, created where it is missing. A demo ends on the day before its creation
 * and keeps its days, so that loading it again sends the same calls and bills.
 */
export async function openDemo(database: Database, dataDir: string, nowMs: number): Promise<OpenedDemo> {
  const file = demoKeyFile(dataDir);
  const known = await findDemoOrganization(database);
  const saved = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
  if (known && saved !== undefined && (await opens(database, saved, known.id)))
    return { organization: known, adminKey: saved };
  const adminKey = makeKey();
  const key = describeKey(adminKey, KEY_NAME, 'admin') as NewKey;
  writePrivateFile(file, `${adminKey}\n`);
  if (known) {
    await insertDemoKey(new OrgDb(database, known.id), key);
    return { organization: known, adminKey };
  }
  const organization: DemoOrganization = {
    id: newUuid(BigInt(nowMs) * 1_000n),
    name: ORGANIZATION_NAME,
    endDay: new Date(nowMs - DAY_MS).toISOString().slice(0, 10),
  };
  // Another process created it just now; it is then opened like any existing one.
  if (!(await insertDemoOrganization(database, organization, key))) return openDemo(database, dataDir, nowMs);
  return { organization, adminKey };
}

async function opens(database: Database, adminKey: string, orgId: string): Promise<boolean> {
  const parsed = parseKey(adminKey);
  const stored = parsed && (await findKey(database, parsed.keyId));
  return stored?.orgId === orgId && stored.revokedAtMicros === null;
}

/** Removes the demo and its key file; returns its number of rows, undefined: there was no demo. */
export async function resetDemo(database: Database, dataDir: string): Promise<number | undefined> {
  const known = await findDemoOrganization(database);
  const removed = known && (await removeDemoOrganization(database, known.id));
  rmSync(demoKeyFile(dataDir), { force: true });
  return removed;
}
