import { startTemporal } from '../../platform/embedded/temporal.js';
import type { TemporalProgram } from '../../platform/embedded/temporalProgram.js';

/** A process that starts an embedded Temporal on a data directory and holds it, for tests that kill it. */
const [dataDir = '', program = ''] = process.argv.slice(2);
const server = await startTemporal({
  program: JSON.parse(program) as TemporalProgram,
  dataDir,
  namespace: 'trueup',
});
process.stdout.write(`pid ${server.pid}\n`);
await server.exited;
