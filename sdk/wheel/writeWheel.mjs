import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zip } from './zip.mjs';

/** Writes the wheel of the Python package without Python, from its pyproject.toml and its sources. */

/** Fields of `[project]` whose values are texts or lists of texts, which JSON reads too. */
function readProject(path) {
  const [, section = ''] =
    /^\[project\]\n([\s\S]*?)(?:^\[|$(?![\s\S]))/m.exec(readFileSync(path, 'utf8')) ?? [];
  const project = {};
  for (const [, name, value] of section.matchAll(/^([\w-]+) = ("[^\n]*"|\[[^\]]*\])$/gm))
    project[name] = JSON.parse(value.replace(/,\s*\]$/, ']'));
  for (const name of ['name', 'version', 'description', 'requires-python', 'license', 'classifiers'])
    if (project[name] === undefined) throw new Error(`${path}: [project] has no ${name}`);
  return project;
}

/** Core metadata 2.4. */
function metadataOf(project, readme) {
  const lines = [
    'Metadata-Version: 2.4',
    `Name: ${project.name}`,
    `Version: ${project.version}`,
    `Summary: ${project.description}`,
    `License-Expression: ${project.license}`,
    'License-File: LICENSE',
    `Keywords: ${(project.keywords ?? []).join(',')}`,
    ...project.classifiers.map((classifier) => `Classifier: ${classifier}`),
    `Requires-Python: ${project['requires-python']}`,
    'Description-Content-Type: text/markdown',
  ];
  return `${lines.join('\n')}\n\n${readme}`;
}

/** `path,sha256=digest,size` of each file, and of itself only the path. */
function recordOf(files, path) {
  const lines = [...files].map(([name, content]) => {
    const digest = createHash('sha256').update(content).digest('base64url');
    return `${name},sha256=${digest},${content.length}`;
  });
  return `${[...lines, `${path},,`].join('\n')}\n`;
}

/** @param project the folder of the package. @returns the name of the file, which it writes into the target. */
export function writeWheel(project, license, target) {
  const about = readProject(join(project, 'pyproject.toml'));
  const sources = join(project, 'src');
  const files = new Map();
  const names = readdirSync(sources, { recursive: true }).map((name) => name.replaceAll('\\', '/'));
  for (const name of names.filter((one) => /(?:\.py|\/py\.typed)$/.test(one)).sort())
    files.set(name, readFileSync(join(sources, name)));
  const distribution = about.name.replaceAll('-', '_');
  const folder = `${distribution}-${about.version}.dist-info`;
  const readme = readFileSync(join(project, 'README.md'), 'utf8');
  files.set(`${folder}/METADATA`, Buffer.from(metadataOf(about, readme)));
  const wheel = ['Wheel-Version: 1.0', 'Generator: trueup', 'Root-Is-Purelib: true', 'Tag: py3-none-any'];
  files.set(`${folder}/WHEEL`, Buffer.from(`${wheel.join('\n')}\n`));
  files.set(`${folder}/licenses/LICENSE`, readFileSync(license));
  const record = `${folder}/RECORD`;
  files.set(record, Buffer.from(recordOf(files, record)));
  const file = `${distribution}-${about.version}-py3-none-any.whl`;
  writeFileSync(join(target, file), zip(files));
  return file;
}
