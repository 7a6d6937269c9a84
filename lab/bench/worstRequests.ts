/**
 * bench:worst-requests — measures pauses of the API and waits of other clients while one organization sends the
 * most expensive valid requests. docs/benchmarks.md explains the measurement.
 */
import { openBenchDatabase, startBenchCluster } from './support/cluster.js';
import { readFlags } from './support/flags.js';
import { makeOrganizations } from './support/organizations.js';
import { startProgram } from './support/programs.js';
import { Bystander } from './support/worstRequests/bystander.js';
import { sendWorst } from './support/worstRequests/sendWorst.js';
import { worstRequests } from './support/worstRequests/worstBodies.js';

/** Maximum pause of the API's event loop. */
const PAUSE_MS_MAX = 250;
const flags = readFlags({ first: 0, last: 1_000 }, { 'no-gate': false });

async function main(): Promise<boolean> {
  const cluster = await startBenchCluster();
  const stops: (() => Promise<void>)[] = [() => cluster.stop()];
  try {
    const url = await cluster.makeDatabase('product');
    const database = openBenchDatabase(url, 1);
    const [sender, other] = await makeOrganizations(database, 2);
    await database.close();
    if (!sender || !other) throw new Error('there are no organizations');
    const pauseFile = `${cluster.folder}/pauses`;
    const api = await startProgram({ name: 'api', url, folder: cluster.folder, pauseFile });
    stops.push(() => api.stop());
    const bystander = new Bystander(api.port, other.key, pauseFile);
    let isGood = true;
    process.stdout.write('answer ms | pause ms | /healthz ms | other ingest ms | status | request\n');
    for (const request of worstRequests().slice(flags.first, flags.last)) {
      const body = request.make();
      const seen = await bystander.watch(() => sendWorst(api.port, sender.key, request, body));
      const { outcome } = seen;
      const isRight =
        outcome instanceof Error
          ? false
          : outcome.status === request.status &&
            (request.accepted === undefined || outcome.accepted === request.accepted);
      if (!isRight || seen.failures > 0 || seen.pauseMs > PAUSE_MS_MAX) isGood = false;
      const cells = [
        outcome instanceof Error ? outcome.message.padStart(9) : outcome.answerMs.toFixed(0).padStart(9),
        seen.pauseMs.toFixed(0).padStart(8),
        seen.healthMs.toFixed(0).padStart(11),
        seen.ingestMs.toFixed(0).padStart(15),
        `${outcome instanceof Error ? '-' : outcome.status}${isRight ? '' : ' !'}`.padStart(6),
        seen.failures === 0 ? request.name : `${request.name}: ${seen.failures} of others failed`,
      ];
      process.stdout.write(`${cells.join(' | ')}\n`);
    }
    return isGood;
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

const isGood = await main();
if (!isGood)
  process.stderr.write('bench:worst-requests: an answer is wrong or the API stood still too long\n');
process.exit(isGood || flags['no-gate'] ? 0 : 1);
