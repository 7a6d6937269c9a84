/**
 * bench:keys — checks that the time of a refusal does not reveal whether a key with an id exists. docs/access.md
 * explains the measurement and its result.
 */

import { composeKey, parseKey } from '../../domain/access/keyRules.js';
import { drawKey } from '../../usecases/access/keyChanges.js';
import { openBenchDatabase, startBenchCluster } from './support/cluster.js';
import { readFlags } from './support/flags.js';
import { HttpConnection } from './support/httpConnection.js';
import { makeOrganizations } from './support/organizations.js';
import { startProgram } from './support/programs.js';
import { formatCount, median } from './support/statistics.js';

const PATH = '/api/v1/events?limit=1';
/** Maximum difference of the medians, as a share. */
const DIFFERENCE_MAX = 0.05;
const WARM_UPS = 500;
/** Interval of requests with the key in use, so that it stays cached. */
const USE_EVERY = 50;

const flags = readFlags({ samples: 10_000 }, { 'no-gate': false });

/** The times of refusals for one kind of key, milliseconds, and their common body. */
interface Refusals {
  name: string;
  /** A different refused key for each call. */
  next(): string;
  times: number[];
  bodies: Set<string>;
}

function refusals(name: string, next: () => string): Refusals {
  return { name, next, times: [], bodies: new Set() };
}

/** A key with this key's id and a wrong secret. */
function wrongSecret(key: string): string {
  const other = parseKey(drawKey().text);
  return composeKey(parseKey(key)?.keyId.slice('key_'.length) ?? '', other?.secret ?? '');
}

async function ask(connection: HttpConnection, kind: Refusals, isMeasured: boolean): Promise<void> {
  const key = kind.next();
  const started = performance.now();
  const { status, body } = await connection.get(PATH, key);
  const took = performance.now() - started;
  if (status !== 401) throw new Error(`a refused key was answered ${status}: ${body}`);
  if (!isMeasured) return;
  kind.times.push(took);
  const { request_id: _id, instance: _instance, ...problem } = JSON.parse(body);
  kind.bodies.add(JSON.stringify(problem));
}

async function main(): Promise<boolean> {
  const cluster = await startBenchCluster();
  const stops: (() => Promise<void>)[] = [() => cluster.stop()];
  try {
    const url = await cluster.makeDatabase('product');
    const database = openBenchDatabase(url, 2);
    stops.push(() => database.close());
    const [used, idle] = await makeOrganizations(database, 2);
    if (!used || !idle) throw new Error('there are no organizations');
    const api = await startProgram({ name: 'api', url, folder: cluster.folder });
    stops.push(() => api.stop());
    const connection = await HttpConnection.open(api.port);
    const unknown = refusals('unknown id', () => drawKey().text);
    const kinds = [
      unknown,
      refusals('wrong secret of a key in use', () => wrongSecret(used.key)),
      refusals('wrong secret of an idle key', () => wrongSecret(idle.key)),
    ];
    // Alternates the kinds, so that other load affects all of them.
    for (let turn = 0; turn < WARM_UPS + flags.samples; turn += 1) {
      if (turn % USE_EVERY === 0) await connection.get(PATH, used.key);
      for (let at = 0; at < kinds.length; at += 1)
        await ask(connection, kinds[(turn + at) % kinds.length] as Refusals, turn >= WARM_UPS);
    }
    connection.close();
    let isGood = new Set(kinds.flatMap(({ bodies }) => [...bodies])).size === 1;
    for (const { name, times } of kinds) {
      const difference = median(times) / median(unknown.times) - 1;
      isGood &&= Math.abs(difference) < DIFFERENCE_MAX;
      process.stdout.write(
        `${name}: ${formatCount(times.length)} refusals, median ${median(times).toFixed(3)} ms, ${(difference * 100).toFixed(1)} % from an unknown id\n`,
      );
    }
    return isGood;
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

const isGood = await main();
if (!isGood) process.stderr.write('bench:keys: refusals can be told apart\n');
process.exit(isGood || flags['no-gate'] ? 0 : 1);
