import { Command } from 'commander';
import { PARTS } from '../../platform/runtimeFile.js';
import { TRUEUP_VERSION } from '../../platform/serverLimits.js';
import { type Inspection, inspectService } from '../service/inspect.js';
import { jsonOption, print, printJson, type Terminal } from '../terminal/terminal.js';

/** Prints the service's address and the state of each part. Exit code 0 when the API and Postgres are up. */
export function command(terminal: Terminal): Command {
  return new Command('status').addOption(jsonOption()).action(async ({ json }: { json?: boolean }) => {
    const config = terminal.readConfig();
    const inspection = await inspectService(config);
    const { postgres, api } = inspection.parts;
    if (json) printJson(terminal, presentStatus(inspection, config.dataDir));
    else print(terminal, renderStatus(inspection, config.dataDir));
    if (api.status !== 'up' || postgres.status !== 'up') terminal.exitCode = 1;
  });
}

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
