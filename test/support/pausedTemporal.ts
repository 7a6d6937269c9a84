import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';

/** A `temporal` program whose first server waits, so that another program can take its port first. */
export interface PausedTemporal {
  program: string;
  /** Takes the port of the first server, lets that server continue, and returns the port. */
  takePort(): Promise<{ port: number; holder: Server }>;
}

const ASKED_LIMIT_MS = 240_000;

/** Creates it in a folder, over the real program. */
export function makePausedTemporal(folder: string, temporal: string): PausedTemporal {
  const [program, asked, go] = ['paused-temporal', 'asked', 'go'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const script = [
    '#!/bin/sh',
    `if [ "$1" = server ] && [ ! -e '${go}' ]; then`,
    `  echo "$*" > '${asked}.draft' && mv '${asked}.draft' '${asked}'`,
    `  while [ ! -e '${go}' ]; do sleep 0.05; done`,
    'fi',
    `exec '${temporal}' "$@"`,
  ];
  writeFileSync(program, `${script.join('\n')}\n`);
  chmodSync(program, 0o755);
  const takePort = async () => {
    const deadline = performance.now() + ASKED_LIMIT_MS;
    while (!existsSync(asked) && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 20));
    const port = Number(/--port (\d+)/.exec(await readFile(asked, 'utf8'))?.[1]);
    const holder = createServer().listen(port, '127.0.0.1');
    await new Promise((resolve, reject) => holder.once('listening', resolve).once('error', reject));
    writeFileSync(go, '');
    return { port, holder };
  };
  return { program, takePort };
}
