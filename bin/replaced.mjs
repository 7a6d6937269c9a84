/** What an npm script of earlier versions prints: the command that replaces it. */
const [, , command] = process.argv;
process.stderr.write(
  `npm run ${process.env.npm_lifecycle_event} is gone: use ./trueup ${command} with the same options; --help lists them.\n`,
);
process.exitCode = 2;
