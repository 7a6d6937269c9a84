export { Overrides as default } from './OwnRates';
