import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { dataDirLockFile, isDiskFull, writePrivateFile } from './embedded/dataDir.js';
import { findLockHolder } from './embedded/fileLock.js';
import { findEmbeddedUrl } from './embedded/postgresPlace.js';
import type { PartStatus } from './supervision.js';

export const PARTS = ['postgres', 'temporal', 'api', 'worker'] as const;
export type PartName = (typeof PARTS)[number];

/** State of one part of a running `npm start`. */
export interface PartState {
  status: PartStatus;
  address?: string;
  version?: string;
  pid?: number;
  /** Whether this process started it, rather than a setting naming it. */
  embedded?: boolean;
  /** Folder of its files. */
  directory?: string;
  /** The lead of its clock over ours, milliseconds; Postgres only. */
  clockSkewMs?: number;
  /** Its state or the remedy, as a sentence. */
  detail?: string;
}

export interface RuntimeState {
  pid: number;
  version: string;
  /** RFC 3339. */
  startedAt: string;
  parts: Record<PartName, PartState>;
}

/**
 * `$DATA_DIR/runtime.json`: the state of the running start's parts, for `./trueup status`, `doctor` and programs that
 * need its database.
 */
export class RuntimeFile {
  readonly #path: string;
  readonly state: RuntimeState;

  constructor(dataDir: string, version: string) {
    this.#path = runtimePath(dataDir);
    const parts = Object.fromEntries(
      PARTS.map((name) => [name, { status: 'down' }]),
    ) as RuntimeState['parts'];
    this.state = { pid: process.pid, version, startedAt: new Date().toISOString(), parts };
    this.#write();
  }

  /** Changes the state of a part; undefined removes a field. */
  set(part: PartName, changes: { [F in keyof PartState]?: PartState[F] | undefined }): void {
    const merged = { ...this.state.parts[part], ...changes };
    this.state.parts[part] = Object.fromEntries(
      Object.entries(merged).filter(([, value]) => value !== undefined),
    ) as unknown as PartState;
    this.#write();
  }

  remove(): void {
    rmSync(this.#path, { force: true });
  }

  /** Best effort: on a full disk the file stays outdated until the next change, and the service continues. */
  #write(): void {
    try {
      writePrivateFile(this.#path, `${JSON.stringify(this.state, null, 2)}\n`);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
  }
}

function runtimePath(dataDir: string): string {
  return join(dataDir, 'runtime.json');
}

/** The state of the start that runs on this data directory; undefined: none runs. */
export function readRunningState(dataDir: string): RuntimeState | undefined {
  const holder = findLockHolder(dataDirLockFile(dataDir));
  if (holder === undefined) return undefined;
  try {
    const state = JSON.parse(readFileSync(runtimePath(dataDir), 'utf8')) as RuntimeState;
    return state.pid === holder ? state : undefined;
  } catch {
    return undefined;
  }
}

/** Connection string of a data directory's embedded Postgres at `host:port`, for the owner of its tables. */
export function embeddedDatabaseUrl(dataDir: string, address: string): string {
  const url = findEmbeddedUrl(dataDir, address, 'owner');
  if (url === undefined) throw new Error(`${dataDir} holds no password of its Postgres`);
  return url;
}
