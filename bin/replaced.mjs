/** Printed by npm scripts of earlier versions: the command that replaces them. */
const [, , command] = process.argv;
process.stderr.write(
  `npm run ${process.env.npm_lifecycle_event} is gone: use ./trueup ${command} with the same options; --help lists them.\n`,
);
process.exitCode = 2;
