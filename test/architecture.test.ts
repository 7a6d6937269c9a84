import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '..');
const ROOMS = [
  'domain',
  'workflows',
  'activities',
  'dispatch',
  'db',
  'adapters',
  'api',
  'platform',
  'demo',
  'bin',
  'bench',
] as const;
type Room = (typeof ROOMS)[number];

const LINES_MAX = 350;
/** What a request passes through before and after its endpoint; every other folder of `api` is a resource. */
const NOT_RESOURCES = ['pipeline', 'limits'];
/** A folder is read at one glance. */
const FILES_MAX_BESIDE_RESOURCES = 20;

interface Import {
  file: string;
  room: Room;
  specifier: string;
  typeOnly: boolean;
}

/** What each room may import: rooms by value, and as types only. `bin`, `bench` and `test` may import everything. */
const ALLOWED: Record<Exclude<Room, 'bin' | 'bench'>, { values: string[]; types: string[] }> = {
  domain: { values: ['domain'], types: [] },
  workflows: { values: ['domain', 'workflows'], types: ['activities'] },
  activities: {
    values: ['domain', 'db', 'platform', 'activities'],
    types: ['adapters', 'workflows/contract'],
  },
  dispatch: { values: ['domain', 'db', 'platform', 'dispatch', 'workflows/contract'], types: ['adapters'] },
  db: { values: ['domain', 'db'], types: [] },
  adapters: {
    values: ['domain', 'workflows/contract', 'platform', 'db/queries/blobs', 'adapters'],
    types: [],
  },
  api: { values: ['domain', 'db', 'platform', 'api'], types: ['adapters', 'workflows/contract'] },
  platform: { values: ['platform'], types: [] },
  demo: { values: ['demo', 'domain/ids', 'domain/money'], types: [] },
};

/** Packages that a room may use; rooms that are not named may use any dependency of the project. */
const PACKAGES: Partial<Record<Room, (file: string, specifier: string) => boolean>> = {
  domain: (file, specifier) =>
    (specifier === 're2js' && file.startsWith('domain/policies/')) ||
    (specifier === 'node:crypto' && file.startsWith('domain/events/')),
  demo: () => false,
  workflows: (_file, specifier) => specifier === '@temporalio/workflow' || specifier === '@temporalio/common',
};

function filesUnder(folder: string): string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => path.relative(ROOT, path.join(entry.parentPath, entry.name)));
}

const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s+)?([^;'"]*?)\s*from\s*'([^']+)'|(?:^|\n)\s*import\s*'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/g;

/** The imports of a file; one whose every name is marked `type` is an import of types. */
function importsOf(file: string, text: string): Import[] {
  const room = file.split(path.sep)[0] as Room;
  return [...text.matchAll(IMPORT)].map((match) => {
    const names = match[3] ?? '';
    const inner = /^\{(.*)\}$/s.exec(names.trim())?.[1];
    const allTypes =
      inner?.split(',').every((name) => name.trim() === '' || name.trim().startsWith('type ')) ?? false;
    return {
      file,
      room,
      specifier: match[4] ?? match[5] ?? match[6] ?? '',
      typeOnly: match[2] !== undefined || allTypes,
    };
  });
}

function placeOf(item: Import): string {
  return path
    .relative(ROOT, path.resolve(ROOT, path.dirname(item.file), item.specifier))
    .replace(/\.js$/, '');
}

function isWithin(place: string, allowed: readonly string[]): boolean {
  return allowed.some((room) => place === room || place.startsWith(`${room}/`));
}

/** Why an import breaks the house rules; undefined where it keeps them. */
function breach(item: Import): string | undefined {
  if (item.room === 'bin' || item.room === 'bench') return undefined;
  if (!item.specifier.startsWith('.')) {
    const mayUse = PACKAGES[item.room];
    return mayUse && !mayUse(item.file, item.specifier)
      ? `${item.file} uses the package ${item.specifier}`
      : undefined;
  }
  const rule = ALLOWED[item.room];
  const place = placeOf(item);
  if (isWithin(place, rule.values) || (item.typeOnly && isWithin(place, rule.types))) return undefined;
  return `${item.file} imports ${place}${item.typeOnly ? ' (types)' : ''}`;
}

const IMPORTS = ROOMS.flatMap((room) => filesUnder(room)).flatMap((file) =>
  importsOf(file, readFileSync(path.join(ROOT, file), 'utf8')),
);

describe('the house', () => {
  it('is read at all: the imports of every room are found', () => {
    expect(IMPORTS.length).toBeGreaterThan(100);
    expect(new Set(IMPORTS.map((item) => item.room)).size).toBeGreaterThanOrEqual(ROOMS.length - 1);
  });

  it('no room imports what the table does not allow it', () => {
    expect(IMPORTS.map(breach).filter((text) => text !== undefined)).toEqual([]);
  });

  it('the test itself tells a forbidden import', () => {
    const forbidden = importsOf(
      'domain/x.ts',
      "import { OrgDb } from '../db/orgDb.js';\nimport fs from 'node:fs';",
    );
    expect(forbidden.map(breach)).toEqual([
      'domain/x.ts imports db/orgDb',
      'domain/x.ts uses the package node:fs',
    ]);
    const typed = importsOf('api/x.ts', "import type { Orchestrator } from '../adapters/orchestrator.js';");
    expect(typed.map(breach)).toEqual([undefined]);
  });

  it('nothing that a workflow reaches uses node:crypto', () => {
    const byFile = new Map<string, Import[]>();
    for (const item of IMPORTS) byFile.set(item.file, [...(byFile.get(item.file) ?? []), item]);
    const seen = new Set<string>();
    const queue = [...byFile.keys()].filter((file) => file.startsWith('workflows/'));
    for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
      if (seen.has(file)) continue;
      seen.add(file);
      for (const item of byFile.get(file) ?? []) {
        if (item.typeOnly) continue;
        expect(item.specifier, `${file} is reached by a workflow`).not.toMatch(/^node:/);
        if (item.specifier.startsWith('.')) queue.push(`${placeOf(item)}.ts`);
      }
    }
    expect(seen.size).toBeGreaterThan(0);
  });

  it('what generates bills to judge the engine by knows nothing of the product', () => {
    const generators = IMPORTS.filter((item) => item.file.startsWith('bench/generators/'));
    const foreign = generators.filter((item) =>
      item.specifier.startsWith('.')
        ? !placeOf(item).startsWith('bench/generators/')
        : !item.specifier.startsWith('node:'),
    );
    expect(foreign.map((item) => `${item.file} imports ${item.specifier}`)).toEqual([]);
    const judges = IMPORTS.filter(
      (item) => item.specifier.startsWith('.') && placeOf(item).startsWith('bench/generators/'),
    ).filter((item) => !item.file.startsWith('bench/'));
    expect(judges.map((item) => item.file)).toEqual([]);
  });

  it('only platform/config.ts reads the environment', () => {
    const readers = ROOMS.filter((room) => room !== 'bench')
      .flatMap((room) => filesUnder(room))
      .filter((file) => /\bprocess\.env\b/.test(readFileSync(path.join(ROOT, file), 'utf8')));
    expect(readers.filter((file) => file !== 'platform/config.ts')).toEqual([]);
  });

  it('only these files send requests; of addresses that users set, only the one that judges them', () => {
    const senders = [
      'adapters/billing/azureTokens.ts',
      'adapters/billing/providerClient.ts',
      'adapters/outbound/safeFetch.ts',
      'bin/startup/demo/demoClient.ts',
      'bin/startup/demo/demoRun.ts',
      'bin/startup/inspect.ts',
      'platform/embedded/temporalDownload.ts',
      'platform/embedded/temporalHealth.ts',
    ];
    const sends =
      /(?<![.\w#])fetch\(|\bglobalThis\.fetch\b|\bhttps?\.(?:request|get)\(|\{[^}]*\b(?:request|get)\b[^}]*\}\s*from\s*'(?:node:)?(?:https?|http2)'|from\s*'(?:undici|axios|got|node-fetch|node:http2)'|\b(?:WebSocket|EventSource|XMLHttpRequest)\(/;
    const found = ROOMS.filter((room) => room !== 'bench')
      .flatMap((room) => filesUnder(room))
      .filter((file) => sends.test(readFileSync(path.join(ROOT, file), 'utf8')));
    expect(found.sort()).toEqual(senders);
    for (const text of [
      'await fetch(url)',
      "import { request } from 'node:https';",
      'http.get(url)',
      "from 'undici'",
    ])
      expect(sends.test(text), text).toBe(true);
  });

  it('a resource of the API is endpoints.ts and wire.ts, and csv.ts where it answers CSV too', () => {
    const entries = readdirSync(path.join(ROOT, 'api'), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory());
    expect(entries.length - folders.length).toBeLessThanOrEqual(FILES_MAX_BESIDE_RESOURCES);
    for (const folder of folders.filter((entry) => !NOT_RESOURCES.includes(entry.name))) {
      const names = readdirSync(path.join(ROOT, 'api', folder.name)).sort();
      expect(
        names.filter((name) => name !== 'csv.ts'),
        folder.name,
      ).toEqual(['endpoints.ts', 'wire.ts']);
    }
  });

  it('each process in bin is a composition root of under 60 lines, imports and comments aside', () => {
    const roots = filesUnder('bin').filter((file) => path.dirname(file) === 'bin');
    expect(roots.length).toBeGreaterThan(3);
    for (const file of roots) {
      const code = readFileSync(path.join(ROOT, file), 'utf8').replace(/^import[^;]*;$/gm, '');
      const lines = code.split('\n').filter((line) => !/^\s*($|\/\/|\/?\*)/.test(line));
      expect(lines.length, file).toBeLessThan(60);
    }
  });

  it('a file is short enough to be read: 350 lines at most, migrations aside', () => {
    const long = ROOMS.flatMap((room) => filesUnder(room))
      .filter((file) => !file.startsWith('db/migrations/'))
      .filter((file) => readFileSync(path.join(ROOT, file), 'utf8').split('\n').length > LINES_MAX);
    expect(long).toEqual([]);
  });

  it('nothing in the project speaks of what is not the project', () => {
    const foreign = new RegExp(
      ['registry\\.npm' + 'js', 'proxy\\.golang\\.' + 'org', 'pypi\\.' + 'org', '/work' + '/shared'].join(
        '|',
      ),
    );
    const files = [
      ...ROOMS.flatMap((room) => filesUnder(room)),
      'package.json',
      'package-lock.json',
      'README.md',
    ];
    expect(files.filter((file) => foreign.test(readFileSync(path.join(ROOT, file), 'utf8')))).toEqual([]);
  });
});
