import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { publicId } from '../../../domain/ids.js';
import { DAY_COUNT } from '../../../lab/demo/calendar.js';
import { DEMO_SEED, generateDemo } from '../../../lab/demo/generateDemo.js';
import type { Config } from '../../../platform/config.js';
import { writePrivateFile } from '../../../platform/embedded/dataDir.js';
import { readRunningState } from '../../../platform/runtimeFile.js';
import { StartError } from '../../../platform/startError.js';
import type { Screen } from '../screen.js';
import { withToolDatabase } from '../toolDatabase.js';
import type { ServiceClient } from './demoClient.js';
import { readFindings } from './demoFindings.js';
import { type LoadedDemo, loadDemo } from './demoLoad.js';
import { demoKeyFile, openDemo } from './demoOrganization.js';
import { renderFindings } from './demoReport.js';

const READY_WAIT_MS = 180_000;
const READY_POLL_MS = 250;

/** What the first screen says of a demo that was loaded. */
interface DemoRecord {
  /** Public id, for commands that ask for --org. */
  organization: string;
  endDay: string;
  events: number;
  flagged: number;
}

/** Loads the demo into the service at `base` and prints what the product finds in it. */
export async function showDemo(config: Config, base: string, screen: Screen): Promise<void> {
  const { client, loaded } = await bringDemo(config, base, screen);
  const findings = await screen.step('findings', readFindings(client, loaded));
  const file = relative(process.cwd(), demoKeyFile(config.dataDir));
  const keyFile = file.startsWith('..') ? demoKeyFile(config.dataDir) : file;
  process.stdout.write(renderFindings(findings, { base, keyFile }));
}

/** Loads the demo into the service at `base`: its organization, key and data. What is there already stays. */
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

/** Bills are read and compared by workflows: without an engine nothing would be found. */
async function waitUntilReady(base: string): Promise<void> {
  const deadline = performance.now() + READY_WAIT_MS;
  for (;;) {
    const ready = await fetch(`${base}/readyz`)
      .then((response) => response.json() as Promise<{ temporal?: string }>)
      .catch(() => undefined);
    if (ready?.temporal === 'up') return;
    if (performance.now() > deadline)
      throw new StartError(
        'The workflow engine does not serve, so no bill can be read: see npm run doctor, then run npm run demo again.',
      );
    await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
  }
}

/** Address of the API of the start that runs on this data directory; undefined when none does. */
export async function findRunningApi(config: Config): Promise<string | undefined> {
  const deadline = performance.now() + READY_WAIT_MS;
  for (;;) {
    const running = readRunningState(config.dataDir);
    if (!running) return undefined;
    if (running.parts.api.address !== undefined) return running.parts.api.address;
    if (performance.now() > deadline)
      throw new StartError('The running service has no API yet: see npm run status, then try again.');
    await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
  }
}

export function recordFile(config: Config): string {
  return join(config.dataDir, 'demo.json');
}

/** Whether a start has to load the demo: it is asked for, and was not loaded here to its end. */
export function isDemoWanted(config: Config): boolean {
  return config.demo && demoLine(config) === undefined;
}

/** The first screen's line about the demo; undefined where none was loaded. */
export function demoLine(config: Config): string | undefined {
  try {
    const { events, flagged, endDay } = JSON.parse(readFileSync(recordFile(config), 'utf8')) as DemoRecord;
    return `${DAY_COUNT} days to ${endDay} · ${events.toLocaleString('en-US')} events · ${flagged} flagged gaps      remove: npm run demo:reset`;
  } catch {
    return undefined;
  }
}
