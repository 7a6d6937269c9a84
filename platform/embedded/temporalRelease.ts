import { execFile } from 'node:child_process';
import { join } from 'node:path';

/** The release that is downloaded or built. tools/temporal/go.mod names the same one. */
export const TEMPORAL_CLI_VERSION = '1.5.1';
/** The server inside that release. */
export const TEMPORAL_SERVER_VERSION = '1.29.1';

/** Where the official release lies: the address of an archive is this, then its name. */
export const TEMPORAL_RELEASE_URL = `https://github.com/temporalio/cli/releases/download/v${TEMPORAL_CLI_VERSION}/`;

/** sha256 of the official archives, by platform and processor as Node names them (docs/decisions/0037). */
export const TEMPORAL_ARCHIVES: Readonly<Record<string, { name: string; sha256: string }>> = {
  'linux-x64': {
    name: `temporal_cli_${TEMPORAL_CLI_VERSION}_linux_amd64.tar.gz`,
    sha256: 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  },
  'linux-arm64': {
    name: `temporal_cli_${TEMPORAL_CLI_VERSION}_linux_arm64.tar.gz`,
    sha256: 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  },
  'darwin-x64': {
    name: `temporal_cli_${TEMPORAL_CLI_VERSION}_darwin_amd64.tar.gz`,
    sha256: 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  },
  'darwin-arm64': {
    name: `temporal_cli_${TEMPORAL_CLI_VERSION}_darwin_arm64.tar.gz`,
    sha256: 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
  },
};

/** The program of the pinned release in the machine's cache, whether it is there or not. */
export function cachedTemporal(cacheDir: string): string {
  return join(cacheDir, `temporal-${TEMPORAL_CLI_VERSION}`, 'temporal');
}

const VERSION_LIMIT_MS = 10_000;

/** Versions that a `temporal` program states; one built without a release number says 0.0.0-DEV. */
export interface TemporalVersion {
  cli: string;
  server: string;
}

/** `temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)` → its versions; undefined for any other text. */
export function parseTemporalVersion(text: string): TemporalVersion | undefined {
  const match = /temporal version (\d+\.\d+\.\d+\S*) \(Server (\d+\.\d+\.\d+\S*?),/.exec(text);
  return match?.[1] && match[2] ? { cli: match[1], server: match[2] } : undefined;
}

/** CLI 1.5 brings server 1.29, the oldest that the workflows are written for. */
export function isRecentEnough(version: TemporalVersion): boolean {
  const [major = 0, minor = 0] = version.server.split('.').map(Number);
  return major > 1 || (major === 1 && minor >= 29);
}

/** Asks a program for its versions; undefined when it does not run or is something else. */
export function readTemporalVersion(program: string): Promise<TemporalVersion | undefined> {
  return new Promise((resolve) => {
    execFile(program, ['--version'], { timeout: VERSION_LIMIT_MS }, (error, stdout) => {
      resolve(error ? undefined : parseTemporalVersion(stdout));
    });
  });
}
