import type { IngestLoad } from './ingestLoads.js';
import { type IngestBench, type Measured, measureProduct, USERS } from './ingestRuns.js';
import type { LoadResult } from './loadClient.js';
import { LoadProcess } from './programs.js';

/** Connections of the other organization. */
const SENDERS = 4;
const READERS = 2;

/** Requests a second of an organization that has nothing to do with the load of another one. */
export interface NeighbourRates {
  ingest: number;
  reads: number;
}

/** An organization alone, beside another one's plain load, and beside its storm. */
export interface NeighbourRound {
  alone: NeighbourRates;
  besidePlain: NeighbourRates;
  besideStorm: NeighbourRates;
  storm: Measured;
  plain: Measured;
  /** The events that the neighbour stored. */
  stored: LoadResult[];
}

/** Measures the bench's last organization, which sends and reads, while the first one sends a storm of repeats. */
export async function measureNeighbour(
  bench: IngestBench,
  { storm, plain }: { storm: IngestLoad; plain: IngestLoad },
  { seconds, seed }: { seconds: number; seed: number },
): Promise<NeighbourRound> {
  const neighbour = new LoadProcess();
  const stored: LoadResult[] = [];
  const key = bench.organizations.at(-1)?.key ?? '';
  const run = async (turn: number): Promise<NeighbourRates> => {
    const result = await neighbour.run({
      port: bench.api.port,
      keys: [key],
      connections: SENDERS,
      readers: READERS,
      users: USERS,
      spansPerRequest: 1,
      seconds,
      repeatPercent: 0,
      seed: seed * 10 + turn,
    });
    stored.push(result);
    return { ingest: result.requests / result.seconds, reads: result.reads / result.seconds };
  };
  try {
    const alone = await run(1);
    const [besidePlain, plainRun] = await Promise.all([
      run(2),
      measureProduct(bench, { ...plain, seconds, seed: seed * 10 + 4 }),
    ]);
    const [besideStorm, stormRun] = await Promise.all([
      run(3),
      measureProduct(bench, { ...storm, seconds, seed: seed * 10 + 5 }),
    ]);
    return { alone, besidePlain, besideStorm, storm: stormRun, plain: plainRun, stored };
  } finally {
    await neighbour.stop();
  }
}
