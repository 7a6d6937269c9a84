import { loadConfig } from '../platform/config.js';
import { runMain } from '../platform/processMain.js';
import { PARTS } from '../platform/runtimeFile.js';
import { TRUEUP_VERSION } from '../platform/serverLimits.js';
import { readCommandLine } from './startup/commandLine.js';
import { type Inspection, inspectService } from './startup/inspect.js';

const USAGE = 'Usage: npm run status [-- --json]';

/** Where the service is and how each part does. Exit code 0 when the API and Postgres are up. */
await runMain(async () => {
  const { values } = readCommandLine(USAGE, { options: { json: { type: 'boolean', default: false } } });
  const config = loadConfig();
  const inspection = await inspectService(config);
  const { postgres, api } = inspection.parts;
  const text = values.json
    ? JSON.stringify(presentStatus(inspection, config.dataDir), null, 2)
    : renderStatus(inspection, config.dataDir);
  process.stdout.write(`${text}\n`);
  process.exitCode = api.status === 'up' && postgres.status === 'up' ? 0 : 1;
});

function presentStatus({ running, parts }: Inspection, dataDir: string): object {
  const { postgres, temporal, api, worker } = parts;
  return {
    running: running !== undefined,
    pid: running?.pid ?? null,
    started_at: running?.startedAt ?? null,
    data_dir: dataDir,
    addresses: {
      api: api.address ?? null,
      docs: api.address ? `${api.address}/docs` : null,
      postgres: postgres.address ?? null,
      temporal: temporal.address ?? null,
    },
    versions: {
      trueup: running?.version ?? TRUEUP_VERSION,
      node: process.versions.node,
      postgres: postgres.version ?? null,
      temporal: temporal.version ?? null,
    },
    postgres,
    temporal,
    api,
    worker,
  };
}

function renderStatus({ running, parts }: Inspection, dataDir: string): string {
  const title = running
    ? `Trueup ${running.version}, process ${running.pid}`
    : `No npm start runs on ${dataDir}`;
  const lines = PARTS.map((name) => {
    const { status, address, version, detail } = parts[name];
    return `  ${name.padEnd(9)} ${status.padEnd(9)} ${[address, version, detail].filter(Boolean).join('  ')}`;
  });
  return [title, ...lines].join('\n');
}
