import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '../../platform/config.js';
import { freeBytes } from '../../platform/embedded/diskSpace.js';
import { isPortTaken } from '../../platform/embedded/freePort.js';
import { findGo } from '../../platform/embedded/temporalBuild.js';
import { findTemporalProgram } from '../../platform/embedded/temporalProgram.js';
import type { Inspection } from '../service/inspect.js';

/** One look at one thing: fine, or what to do. */
export interface Finding {
  what: string;
  ok: boolean;
  text: string;
}

const FREE_BYTES_MIN = 2 * 1024 ** 3;
const CLOCK_SKEW_MS_MAX = 5_000;

export function checkNode(): Finding {
  return { what: 'Node.js', ok: true, text: process.versions.node };
}

export async function checkPort(config: Config, { running, parts }: Inspection): Promise<Finding> {
  const what = 'port';
  if (running) {
    const { status, address, detail } = parts.api;
    if (status === 'up') return { what, ok: true, text: `${address} answers` };
    if (status === 'degraded') return { what, ok: false, text: `${address}: ${detail}` };
    return { what, ok: false, text: `the API at ${address} does not answer: look at its log` };
  }
  const taken = await isPortTaken(config.port, config.host).catch(
    (error: NodeJS.ErrnoException) => error.code ?? true,
  );
  if (taken === false) return { what, ok: true, text: `${config.host}:${config.port} is free` };
  const reason = taken === true ? 'is taken by another program' : `cannot be used (${taken})`;
  return { what, ok: false, text: `${config.host}:${config.port} ${reason}: set PORT to a free one` };
}

export function checkDisk(config: Config, { parts }: Inspection): Finding {
  const what = 'disk';
  let folder = config.dataDir;
  while (!existsSync(folder)) folder = dirname(folder);
  try {
    accessSync(folder, constants.W_OK);
  } catch {
    return { what, ok: false, text: `${folder} cannot be written: set DATA_DIR to a folder that you own` };
  }
  // The cluster may lie on another disk.
  const folders = [config.dataDir, parts.postgres.directory ?? config.dataDir];
  const [[fullest, free] = [config.dataDir, 0]] = folders
    .map((each): [string, number] => [each, freeBytes(each)])
    .sort(([, a], [, b]) => a - b);
  const text = `${fullest}: ${(free / 1024 ** 3).toFixed(1)} GB free`;
  return free >= FREE_BYTES_MIN
    ? { what, ok: true, text }
    : { what, ok: false, text: `${text}: free some space, 2 GB at least` };
}

export function checkPostgres({ running, parts }: Inspection): Finding {
  const { status, address, version, detail, embedded } = parts.postgres;
  const what = 'Postgres';
  if (status === 'degraded') return { what, ok: false, text: `${address}: ${detail}` };
  if (status === 'up') return { what, ok: true, text: `${address}, version ${version}` };
  if (!running && embedded) return { what, ok: true, text: 'embedded, not running: npm start starts it' };
  const remedy = embedded ? 'look at logs/postgres.log in DATA_DIR' : 'start it, or correct DATABASE_URL';
  return {
    what,
    ok: false,
    text: `${address ?? 'embedded'} does not answer (${detail ?? status}): ${remedy}`,
  };
}

export async function checkTemporal(config: Config, { parts }: Inspection): Promise<Finding> {
  const what = 'Temporal';
  const { status, address, version, detail, embedded } = parts.temporal;
  if (status === 'up') return { what, ok: true, text: `${address}${version ? `, version ${version}` : ''}` };
  if (!embedded)
    return { what, ok: false, text: `${address} does not answer: start it, or correct TEMPORAL_ADDRESS` };
  if (status === 'building' || status === 'starting') return { what, ok: true, text: detail ?? 'starting' };
  const program = await findTemporalProgram(config);
  if (program)
    return {
      what,
      ok: true,
      text: `${program.program} (server ${program.serverVersion}), not running: npm start starts it`,
    };
  if (findGo()) return { what, ok: true, text: 'no program yet: the first npm start fetches or builds it' };
  return {
    what,
    ok: false,
    text: 'no program and no Go to build one: put temporal 1.5 or newer on PATH, install Go, or set TEMPORAL_ADDRESS',
  };
}

export function checkWorker({ running, parts }: Inspection): Finding {
  const { status, detail } = parts.worker;
  const ok = !running || status !== 'down';
  return {
    what: 'worker',
    ok,
    text: running ? `${status}${detail ? `: ${detail}` : ''}` : 'not running: npm start starts it',
  };
}

export function checkClock({ parts }: Inspection): Finding {
  const what = 'clock';
  const { clockSkewMs } = parts.postgres;
  if (clockSkewMs === undefined) return { what, ok: true, text: new Date().toISOString() };
  const ok = Math.abs(clockSkewMs) <= CLOCK_SKEW_MS_MAX;
  const text = `${Math.round(clockSkewMs)} ms from the clock of Postgres`;
  return { what, ok, text: ok ? text : `${text}: set the clocks by NTP, or events land on wrong days` };
}

export function checkKey(config: Config, { running }: Inspection): Finding {
  const what = 'admin key';
  const file = join(config.dataDir, 'admin-key');
  if (!existsSync(file)) {
    const text = `${file} is not there: `;
    return running
      ? { what, ok: false, text: `${text}make one with ./trueup keys create --role admin --name NAME` }
      : { what, ok: true, text: `${text}the first npm start makes it` };
  }
  const isPrivate = (statSync(file).mode & 0o077) === 0;
  return { what, ok: isPrivate, text: isPrivate ? file : `${file} can be read by others: chmod 600 ${file}` };
}
