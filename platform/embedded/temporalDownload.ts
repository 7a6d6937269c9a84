import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TEMPORAL_ARCHIVES, TEMPORAL_RELEASE_URL } from './temporalRelease.js';

/** Given up after this long without a sign of life: behind a closed network the build should not wait. */
const SILENCE_LIMIT_MS = 10_000;

export interface DownloadOptions {
  /** Where the program is to lie. */
  target: string;
  signal?: AbortSignal | undefined;
  /** Other than the official release, for tests. */
  source?: { url: string; sha256: string };
  silenceLimitMs?: number;
}

/**
 * Fetches the official release of the pinned version, checks its sha256 and unpacks the program to `target`.
 * @throws Error saying why when it cannot be had: no network, another checksum, no release for this platform.
 */
export async function downloadTemporal(options: DownloadOptions): Promise<void> {
  const source = options.source ?? officialArchive();
  const folder = `${options.target}.download-${process.pid}`;
  await mkdir(folder, { recursive: true });
  try {
    const archive = join(folder, 'archive.tar.gz');
    const sha256 = await fetchTo(archive, source.url, options);
    if (sha256 !== source.sha256) {
      throw new Error(
        `${source.url} has the sha256 ${sha256}, not the pinned ${source.sha256}: it was not used`,
      );
    }
    await unpack(archive, folder);
    await chmod(join(folder, 'temporal'), 0o755);
    await mkdir(dirname(options.target), { recursive: true });
    await rename(join(folder, 'temporal'), options.target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function officialArchive(): { url: string; sha256: string } {
  const platform = `${process.platform}-${process.arch}`;
  const archive = TEMPORAL_ARCHIVES[platform];
  if (!archive) throw new Error(`there is no release for ${platform}`);
  return { url: TEMPORAL_RELEASE_URL + archive.name, sha256: archive.sha256 };
}

/** Streams an address into a file and returns its sha256. */
async function fetchTo(file: string, url: string, options: DownloadOptions): Promise<string> {
  const silence = new AbortController();
  const limitMs = options.silenceLimitMs ?? SILENCE_LIMIT_MS;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(new Error(`no answer for ${limitMs / 1000} s`)), limitMs);
  };
  let timer: NodeJS.Timeout | undefined;
  heard();
  const signal = options.signal ? AbortSignal.any([silence.signal, options.signal]) : silence.signal;
  try {
    const response = await fetch(url, { signal });
    if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
    const hash = createHash('sha256');
    const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
    body.on('data', (chunk: Buffer) => {
      hash.update(chunk);
      heard();
    });
    await pipeline(body, createWriteStream(file), { signal });
    return hash.digest('hex');
  } catch (error) {
    throw silence.signal.aborted ? silence.signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

function unpack(archive: string, folder: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const tar = spawn('tar', ['-xzf', archive, '-C', folder, 'temporal'], { stdio: 'ignore' });
    tar.once('error', reject);
    tar.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error('the archive cannot be unpacked with tar')),
    );
  });
}
