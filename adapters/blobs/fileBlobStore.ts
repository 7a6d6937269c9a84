import { randomUUID } from 'node:crypto';
import { access, constants, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DomainError } from '../../domain/errors.js';
import { type BlobStore, isBlobKey, refuseUnsafeFolder, refuseUnsafeKey } from './blobStore.js';
import { rethrowAsStorageError, writeDraft } from './draft.js';

const FOLDER_MODE = 0o700;
/** Not a valid key, so its files are neither listed nor backed up. */
const DRAFTS = '.drafts';
/** Longer than any upload, milliseconds: the process of an older draft was killed. */
const ABANDONED_MS = 86_400_000;

/** Stores each file at its key below `root`, readable by this user alone. */
export function fileBlobStore(root: string): BlobStore {
  const drafts = join(root, DRAFTS);
  let prepared: Promise<void> | undefined;
  const pathOf = (key: string) => {
    refuseUnsafeKey(key);
    return join(root, key);
  };

  return {
    kind: 'file',
    place: root,

    async put(key, bytes, { bytesMax }) {
      const path = pathOf(key);
      prepared ??= prepareDrafts(drafts);
      await prepared.catch((error) => {
        prepared = undefined;
        rethrowAsStorageError(error);
      });
      const draft = join(drafts, randomUUID());
      const { file, sha256, sizeBytes } = await writeDraft(draft, bytes, bytesMax);
      try {
        await file.sync().finally(() => file.close());
        const created = await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
        await rename(draft, path);
        await syncFolders(dirname(path), created === undefined ? dirname(path) : dirname(created));
      } catch (error) {
        await rm(draft, { force: true });
        rethrowAsStorageError(error);
      }
      return { sha256, sizeBytes };
    },

    async get(key) {
      const file = await open(pathOf(key)).catch((error: NodeJS.ErrnoException) => {
        if (isMissing(error)) throw new DomainError('not_found', `There is no file ${key}.`);
        throw error;
      });
      const { size } = await file.stat();
      return { sizeBytes: size, stream: file.createReadStream() };
    },

    async exists(key) {
      const found = await stat(pathOf(key)).catch((error) => {
        if (!isMissing(error)) throw error;
      });
      return found !== undefined;
    },

    async delete(key) {
      const path = pathOf(key);
      try {
        await rm(path);
        await syncFolders(dirname(path), dirname(path));
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    },

    stream(folder) {
      refuseUnsafeFolder(folder);
      return listBelow(root, folder);
    },

    async check() {
      const found = await stat(root).catch(() => undefined);
      // The first stored file creates the folder.
      if (found === undefined) return;
      await access(root, constants.R_OK | constants.W_OK | constants.X_OK).catch((error) => {
        throw new Error(`${root} cannot be written: give it to the user of the service`, { cause: error });
      });
      if ((found.mode & 0o077) !== 0) throw new Error(`others can read ${root}: chmod 700 ${root}`);
    },
  };
}

/** Creates the folder of drafts and deletes drafts of killed processes. */
async function prepareDrafts(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && Date.now() - found.mtimeMs > ABANDONED_MS) await rm(path, { force: true });
  }
}

/** Syncs a folder to disk, and its parents up to `last`. */
async function syncFolders(folder: string, last: string): Promise<void> {
  const handle = await open(folder);
  await handle.sync().finally(() => handle.close());
  if (folder !== last) await syncFolders(dirname(folder), last);
}

/** By key: a folder sorts as its name with a slash, as in the keys of its files. */
async function* listBelow(root: string, folder: string): AsyncGenerator<{ key: string; sizeBytes: number }> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch((error) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
  for (const name of names.sort()) {
    const key = `${folder}${name}`;
    if (name.endsWith('/') && !name.startsWith('.')) yield* listBelow(root, key);
    if (!isBlobKey(key)) continue;
    const found = await stat(join(root, key)).catch(() => undefined);
    if (found?.isFile()) yield { key, sizeBytes: found.size };
  }
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}
