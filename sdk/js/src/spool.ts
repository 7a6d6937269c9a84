import { randomInt } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import type { Spool, SpoolOptions } from './platform.js';

/**
 * Files of events, one a line. A line is written before the application has its answer, so that neither a killed
 * process nor a service that is away loses it; a line that is sent twice counts once.
 */

/** A file of this size is closed and a new one begun. */
const FILE_BYTES_MAX = 4_194_304;
/** The files of another machine's process are taken over when they were not touched for so long, milliseconds. */
const FOREIGN_IDLE_MS = 600_000;
const TOUCH_MS = 60_000;
/** Process starts that differ by less are one, seconds. */
const START_TOLERANCE_S = 2;
const NAME = /^trueup-(.+)-(\d+)-(\d+)-(\d+)-\d+\.ndjson$/;

interface File {
  path: string;
  bytes: number;
  /** Bytes of it that have arrived. */
  confirmed: number;
}

export function openSpool(folder: string, options: SpoolOptions): Spool {
  return new FileSpool(folder, options);
}

class FileSpool implements Spool {
  readonly #folder: string;
  readonly #bytesMax: number;
  readonly #owner: string;
  /** Oldest first; the last one is written where `#descriptor` is set. */
  readonly #files: File[] = [];
  #descriptor: number | undefined;
  #number = 0;
  #bytes = 0;
  #readBytes = 0;
  #touchedAt = 0;

  constructor(folder: string, { bytesMax }: SpoolOptions) {
    this.#folder = folder;
    this.#bytesMax = bytesMax;
    const host =
      hostname()
        .replace(/[^A-Za-z0-9.]/g, '_')
        .slice(0, 64) || 'host';
    const started = Math.round(Date.now() / 1_000 - process.uptime());
    this.#owner = `${host}-${process.pid}-${threadId}-${started}`;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#takeOver(host, started);
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  append(line: string): void {
    const bytes = Buffer.from(`${line}\n`, 'utf8');
    if (this.#bytes + bytes.length > this.#bytesMax) throw new Error('the spool is full');
    const file = this.#writable();
    writeSync(this.#descriptor as number, bytes);
    file.bytes += bytes.length;
    this.#bytes += bytes.length;
  }

  read(linesMax: number, bytesMax: number): string[] {
    this.#touch();
    const [file] = this.#files;
    if (file === undefined) return [];
    const wanted = Math.min(file.bytes - file.confirmed, bytesMax);
    let text = readPart(file, wanted);
    // A line longer than the limit is read whole.
    if (!text.includes('\n')) text = readPart(file, file.bytes - file.confirmed);
    const lines = text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .slice(0, -1)
      .slice(0, linesMax);
    this.#readBytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
    if (lines.length === 0) this.#remove(file);
    // A process that was killed within a write leaves a part of a line, which is no event.
    return lines.filter(isJson);
  }

  confirm(): void {
    const [file] = this.#files;
    if (file === undefined) return;
    file.confirmed += this.#readBytes;
    this.#bytes -= this.#readBytes;
    this.#readBytes = 0;
    if (file.confirmed < file.bytes) return;
    if (this.#files.length === 1 && this.#descriptor !== undefined) {
      closeSync(this.#descriptor);
      this.#descriptor = undefined;
    }
    this.#remove(file);
  }

  /** Events that are left belong to nobody, so that the next process that opens the folder takes them over. */
  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
    for (const file of [...this.#files]) {
      if (file.bytes === file.confirmed) this.#remove(file);
      else renameSync(file.path, this.#path('ownerless-0-0-0', randomInt(2 ** 47)));
    }
    this.#files.length = 0;
    this.#bytes = 0;
  }

  #path(owner: string, number: number): string {
    return join(this.#folder, `trueup-${owner}-${number}.ndjson`);
  }

  #writable(): File {
    const last = this.#files.at(-1);
    if (this.#descriptor !== undefined && last && last.bytes < FILE_BYTES_MAX) return last;
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
    const path = this.#nextPath();
    this.#descriptor = openSync(path, 'a', 0o600);
    const file = { path, bytes: 0, confirmed: 0 };
    this.#files.push(file);
    return file;
  }

  #nextPath(): string {
    for (;;) {
      this.#number += 1;
      const path = this.#path(this.#owner, this.#number);
      if (!existsSync(path)) return path;
    }
  }

  #remove(file: File): void {
    this.#bytes -= file.bytes - file.confirmed;
    this.#files.splice(this.#files.indexOf(file), 1);
    try {
      unlinkSync(file.path);
    } catch {
      // Another process has removed it.
    }
  }

  /** The files of processes that have ended become this process's. Of two that try, the rename lets one win. */
  #takeOver(host: string, started: number): void {
    for (const name of readdirSync(this.#folder)) {
      const match = NAME.exec(name);
      if (!match) continue;
      const path = join(this.#folder, name);
      if (isOwned(path, host, started, match)) continue;
      const own = this.#nextPath();
      try {
        renameSync(path, own);
        const bytes = statSync(own).size;
        this.#files.push({ path: own, bytes, confirmed: 0 });
        this.#bytes += bytes;
      } catch {
        // Another process was first.
      }
    }
  }

  /** Shows other machines that share the folder that this process lives. */
  #touch(): void {
    const now = Date.now();
    if (now - this.#touchedAt < TOUCH_MS) return;
    this.#touchedAt = now;
    for (const { path } of this.#files) {
      try {
        utimesSync(path, now / 1_000, now / 1_000);
      } catch {
        // The folder was cleaned: the next write fails with that error.
      }
    }
  }
}

function readPart(file: File, bytes: number): string {
  const descriptor = openSync(file.path, 'r');
  try {
    const size = Math.min(bytes, fstatSync(descriptor).size - file.confirmed);
    const buffer = Buffer.alloc(Math.max(size, 0));
    const read = readSync(descriptor, buffer, 0, buffer.length, file.confirmed);
    return buffer.toString('utf8', 0, read);
  } finally {
    closeSync(descriptor);
  }
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

/** Whether a process that may live owns the file. */
function isOwned(path: string, host: string, started: number, match: RegExpExecArray): boolean {
  const [, ownerHost, ownerPid, , ownerStarted] = match;
  if (Number(ownerPid) === 0) return false;
  try {
    if (ownerHost !== host) return Date.now() - statSync(path).mtimeMs < FOREIGN_IDLE_MS;
    const pid = Number(ownerPid);
    // The same number at another time is another process: in containers every one has the number 1.
    if (pid === process.pid) return Math.abs(Number(ownerStarted) - started) <= START_TOLERANCE_S;
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
