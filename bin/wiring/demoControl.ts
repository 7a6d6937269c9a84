import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import type { Logger } from 'pino';
import type { DemoControl } from '../../usecases/installation/demoRuns.js';
import { programFile } from './programFile.js';

/** The loopback address at which an API on every address is reached. */
const OPEN_HOSTS: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** The demo in programs of their own: making and sending its calls keeps a processor busy for seconds. */
export function demoControlOf(host: string, port: () => number, logger: Logger): DemoControl {
  const reached = OPEN_HOSTS[host] ?? host;
  const base = () => `http://${isIPv6(reached) ? `[${reached}]` : reached}:${port()}`;
  const script = programFile('trueup');
  const start = (words: readonly string[]) => {
    const child = spawn(process.execPath, [...process.execArgv, script, 'demo', ...words], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    child.on('error', (error) => logger.error({ err: error }, 'the demo cannot be started'));
    return child;
  };
  return {
    load: ({ orgId, id }) => {
      start(['load', '--for', orgId, '--run', id, '--base', base()]).unref();
    },
    async remove() {
      const [code] = (await once(start(['reset']), 'exit')) as [number | null];
      if (code !== 0) throw new Error(`the program that removes the demo ended with ${code}`);
    },
  };
}
