export { ContractRates as default } from './OwnRates';
